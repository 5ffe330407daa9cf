package bootstrap

import (
	"strings"
	"testing"
)

func TestStatsTagsWithTokens(t *testing.T) {
	c, err := Parse("b.yaml", []byte("stats_config: {stats_tags: [{tag_name: shop, tokens: shop.$.**}]}\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Stats.Tags; len(got) != 1 || got[0].Tokens != "shop.$.**" {
		t.Errorf("tags %+v", got)
	}
	_, err = Parse("b.yaml", []byte("stats_config: {stats_tags: [{tag_name: shop, tokens: shop.**}]}\n"), Options{})
	if err == nil || !strings.Contains(err.Error(), `stats_tags[0].tokens: token pattern "shop.**" has 0 tokens "$", want 1`) {
		t.Errorf("error %v", err)
	}
}
