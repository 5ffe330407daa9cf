// Checks of a page as the browser has laid it out and painted it. Each returns a list
// of flaws, which is empty if there are none.
window.checks = (() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const show = (e) => e.outerHTML.replace(/\s+/g, ' ').slice(0, 140);
  const seen = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });
  const hidden = (e) => e.closest('.vh, .home thead, .skip:not(:focus)') !== null;
  const targets = 'a[href], button, select, input:not([type="hidden"]), textarea, summary';
  const box = (e) => (e.closest('label') && e.matches('input, select') ? e.closest('label') : e).getBoundingClientRect();

  // Colors are red, green, blue from 0 to 255, and alpha from 0 to 1.
  const color = (text) => {
    const n = (text.match(/[\d.]+(?:e-?\d+)?/g) ?? []).map(Number);
    const scale = text.startsWith('color(') ? 255 : 1;
    return n.length < 3 ? [0, 0, 0, 0] : [n[0] * scale, n[1] * scale, n[2] * scale, n[3] ?? 1];
  };
  const over = (top, below) => top.slice(0, 3).map((c, i) => c * top[3] + below[i] * (1 - top[3])).concat(1);
  const luminance = (c) => {
    const [r, g, b] = c.map((x) => (x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  // behind returns the color that is painted behind the content of an element.
  const behind = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) {
      const c = color(getComputedStyle(at).backgroundColor);
      layers.push(c);
      if (c[3] === 1) {
        break;
      }
    }
    const canvas = getComputedStyle(document.documentElement).colorScheme.includes('dark') && matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18, 1] : [255, 255, 255, 1];
    return layers.reverse().reduce((below, c) => over(c, below), canvas);
  };
  const opacity = (e) => {
    let share = 1;
    for (let at = e; at; at = at.parentElement) {
      share *= Number(getComputedStyle(at).opacity);
    }
    return share;
  };
  const faded = (c, share) => [...c.slice(0, 3), c[3] * share];
  // drawnBehind returns the color behind a text of a picture.
  const drawnBehind = (text) => {
    const picture = text.closest('svg');
    const b = text.getBoundingClientRect();
    let c = behind(picture.parentElement);
    for (const shape of picture.querySelectorAll('rect')) {
      const s = shape.getBoundingClientRect();
      if (shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING && s.left <= b.left + 1 && s.right >= b.right - 1 && s.top <= b.top + 6 && s.bottom >= b.bottom - 6) {
        const style = getComputedStyle(shape);
        if (style.fill !== 'none') {
          c = over(faded(color(style.fill), Number(style.fillOpacity) * Number(style.opacity)), c);
        }
      }
    }
    return c;
  };

  // contrast compares all texts with what is behind them, and marks that carry a
  // meaning, and the borders of fields.
  function contrast() {
    const found = new Map();
    const note = (e, kind, front, back, least) => {
      const r = ratio(over(front, back), back);
      if (r < least - 0.005) {
        found.set(`${kind} ${front} on ${back}`, `${kind} ${r.toFixed(2)} < ${least}: ${front} on ${back.map(Math.round)}: ${show(e)}`);
      }
    };
    const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const parents = new Set();
    while (words.nextNode()) {
      if (words.currentNode.data.trim() !== '') {
        parents.add(words.currentNode.parentElement);
      }
    }
    for (const e of parents) {
      if (!seen(e) || hidden(e) || e.closest('script, option, [aria-disabled="true"], :disabled')) {
        continue;
      }
      const style = getComputedStyle(e);
      const drawn = e.closest('svg');
      note(e, 'text', faded(color(drawn ? style.fill : style.color), opacity(e)), drawn ? drawnBehind(e) : behind(e), 4.5);
    }
    for (const e of all('[placeholder]').filter(seen)) {
      note(e, 'placeholder', color(getComputedStyle(e, '::placeholder').color), behind(e), 4.5);
    }
    for (const e of all('input[type="text"], input[type="search"], select, textarea, .chip').filter(seen)) {
      note(e, 'border', color(getComputedStyle(e).borderTopColor), behind(e.parentElement), 3);
    }
    for (const e of all('svg .f, svg .ln, svg .hollow, svg.icon').filter(seen)) {
      const style = getComputedStyle(e);
      const stroked = e.matches('.ln, .hollow') || style.fill === 'none';
      if (Number(style.fillOpacity) === 1) { // the steps of a scale of one hue have a table beside them
        note(e, 'graphic', color(stroked ? style.stroke : style.fill), behind(e.closest('svg').parentElement), 3);
      }
    }
    return [...found.values()];
  }

  const scrolls = (e) => ['auto', 'scroll'].includes(getComputedStyle(e).overflowX);
  const scroller = (e) => {
    for (let at = e; at; at = at.parentElement) {
      if (scrolls(at)) {
        return at;
      }
    }
    return null;
  };
  // reflow expects no content wider than the window outside of regions that scroll by
  // themselves and can be reached with the keyboard, and no text that is cut.
  function reflow() {
    const found = [];
    if (document.documentElement.scrollWidth > innerWidth) {
      const wide = all('body *').findLast((e) => (e.getBoundingClientRect().right > innerWidth + 1 || e.scrollWidth > innerWidth) && !hidden(e) && !scroller(e));
      found.push(`the page is ${document.documentElement.scrollWidth} wide in ${innerWidth}: ${wide ? show(wide) : 'unknown'}`);
    }
    for (const e of all('tbody th').filter(seen)) {
      const b = e.getBoundingClientRect();
      if (b.width < 90 && b.height > 90) {
        found.push(`the name is squeezed to ${Math.round(b.width)} x ${Math.round(b.height)}: ${show(e)}`);
      }
    }
    const pen = new OffscreenCanvas(1, 1).getContext('2d');
    for (const e of all('[placeholder]').filter((x) => seen(x) && x.value === '')) {
      const style = getComputedStyle(e);
      pen.font = style.font;
      const [need, room] = [pen.measureText(e.placeholder).width, e.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)];
      if (need > room) {
        found.push(`the placeholder needs ${Math.round(need)} of ${Math.round(room)}: ${show(e)}`);
      }
    }
    for (const e of all('body *').filter((x) => seen(x) && !hidden(x))) {
      const style = getComputedStyle(e);
      if (!e.matches('svg, input') && (style.overflowX === 'hidden' || style.overflowX === 'clip') && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)) {
        found.push(`cut at ${e.clientWidth} x ${e.clientHeight} of ${e.scrollWidth} x ${e.scrollHeight}: ${show(e)}`);
      }
      if (scrolls(e) && e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0 && e.querySelector(targets) === null) {
        found.push(`scrolls out of reach of the keyboard: ${show(e)}`);
      }
    }
    return found;
  }

  // spacing repeats reflow with the spacing of text that readers may choose.
  function spacing() {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync('* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important; } p { margin-bottom: 2em !important; }');
    document.adoptedStyleSheets.push(sheet);
    const found = reflow();
    document.adoptedStyleSheets.pop();
    return found;
  }

  // small lists targets under 24 × 24 that are neither in a sentence nor have that
  // much room around them.
  function small() {
    const list = all(targets).filter((e) => seen(e) && !hidden(e)).map((e) => [e, box(e)]).filter(([, b]) => b.width > 0);
    const centers = list.map(([, b]) => [b.left + b.width / 2, b.top + b.height / 2]);
    const tiny = (b) => b.width < 23.5 || b.height < 23.5;
    return list.filter(([e, b], i) => {
      if (!tiny(b) || (getComputedStyle(e).display === 'inline' && e.closest('p, li, td, dd')?.textContent.trim().length > e.textContent.trim().length + 2)) {
        return false;
      }
      return list.some(([other, o], j) => {
        if (i === j || other.closest('label') !== null && other.closest('label') === e.closest('label') || other.contains(e) || e.contains(other)) {
          return false;
        }
        const [x, y] = centers[i];
        const near = Math.hypot(Math.max(o.left - x, 0, x - o.right), Math.max(o.top - y, 0, y - o.bottom));
        return near < 12 || tiny(o) && Math.hypot(x - centers[j][0], y - centers[j][1]) < 24;
      });
    }).map(([e, b]) => `${Math.round(b.width)} x ${Math.round(b.height)}: ${show(e)}`);
  }

  // focus gives the focus to controls, one after the other, and expects a ring around
  // each, and none behind the navigation that stays in place.
  function focus(most) {
    const found = [];
    const before = document.activeElement;
    const bar = document.querySelector('nav');
    for (const e of all(`${targets}, [tabindex="0"]`).filter((x) => seen(x) && !x.disabled).slice(0, most)) {
      e.focus({ focusVisible: true });
      if (document.activeElement !== e) {
        found.push(`takes no focus: ${show(e)}`);
        continue;
      }
      const ring = [e, e.closest('label')].filter(Boolean).map((x) => getComputedStyle(x)).find((s) => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2);
      if (!ring) {
        found.push(`no ring: ${show(e)}`);
      } else if (ratio(color(ring.outlineColor), behind(document.body)) < 3) {
        found.push(`faint ring ${ring.outlineColor}: ${show(e)}`);
      }
      const b = e.getBoundingClientRect();
      const cover = bar?.getBoundingClientRect();
      if (cover && !bar.contains(e) && b.height > 0 && b.top >= cover.top - 1 && b.bottom <= cover.bottom + 1) {
        found.push(`behind the navigation: ${show(e)}`);
      }
    }
    before.focus?.();
    scrollTo(0, 0);
    if (all('[tabindex]').some((e) => e.tabIndex > 0)) {
      found.push('an element is out of order');
    }
    return found;
  }

  // A row out of view has an assumed height, which its content can exceed.
  const rendered = new CSSStyleSheet();
  rendered.replaceSync('tr { content-visibility: visible !important; }');
  document.adoptedStyleSheets.push(rendered);
  return { contrast, reflow, spacing, small, focus };
})();
