module github.com/statsd-admin/statsd-admin/tools/mutants

go 1.26.4
