'use strict';
// Behaviour of the page: plots, joint, theme, time window, turning the bodies.

const root = document.documentElement;
const store = document.getElementById('plots');
const INK = { light: ['#1e293b', '#d5dce6', '#526075'], dark: ['#e6ebf2', '#334155', '#a9b5c6'] };
let plots = null;
let joints = [];
let printing = false;

// -- plots --------------------------------------------------------------------------------------
async function embed() {
  if (!store) return {};
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const packed = new Blob([bytes(store.textContent)]).stream();
  const text = await new Response(packed.pipeThrough(new DecompressionStream('gzip'))).text();
  // Bokeh reads bytes as they are, too; how text holds them depends on its version.
  const unpack = (_, value) => (value?.type === 'bytes' ? bytes(value.data).buffer : value);
  const { document: content, roots, data } = JSON.parse(text, unpack);
  content.version = Bokeh.version;
  const item = { docid: 'report', roots, root_ids: Object.keys(roots) };
  await Bokeh.embed.embed_items({ report: content }, [item]);
  const ready = Bokeh.documents[Bokeh.documents.length - 1];
  joints = data.joints ?? [];
  chooseJoint(0, ready);
  // Who holds the pointer still before a drag still zooms.
  const [{ canvas_view: canvas }] = Bokeh.index.roots;
  canvas.ui_event_bus.ui_gestures.constructor.press_threshold = 2 ** 31 - 1;
  plots = ready;
  // On a touch screen dragging scrolls the page; the tools can still be chosen.
  if (matchMedia('(pointer: coarse)').matches) {
    const tools = plots.roots().flatMap((plot) => plot.toolbar.tools);
    for (const tool of tools) if (tool.type === 'BoxZoomTool') tool.active = false;
  }
  paint();
  linkWindow();
  return data;
}

// -- the joint that all plots show ----------------------------------------------------------------
const chooser = document.querySelector('.choose select');
chooser?.addEventListener('change', () => chooseJoint(Number(chooser.value)));

const partsOfJoints = () => [...document.querySelectorAll('.of-joint')];
function chooseJoint(k, all = plots) {
  for (const part of partsOfJoints()) part.hidden = Number(part.dataset.joint) !== k;
  if (!joints[k] || !all) return;
  for (const plot of all.roots()) {
    for (const { data_source: shown } of plot.renderers) {
      const [every] = shown?.tags ?? [];
      if (!every) continue;
      const columns = Object.keys(shown.data);
      shown.data = Object.fromEntries(columns.map((c) => [c, every.data[c + k] ?? every.data[c]]));
    }
    for (const [i, [axis]] of [plot.below, plot.left].entries()) {
      const label = plot.tags[i];
      if (label?.includes('{')) axis.axis_label = label.replace(/{(\w+)}/g, (_, key) => joints[k][key]);
    }
  }
}

// Paper shows every joint: pictures of the plots, below the joint's name.
function printJoints() {
  const chosen = Number(chooser?.value ?? 0);
  for (const part of joints.length ? partsOfJoints() : []) {
    chooseJoint(Number(part.dataset.joint));
    paintNow();
    const sheet = document.createElement('div');
    sheet.className = 'sheet';
    for (const figure of document.querySelectorAll('#joints .one-joint figure')) {
      const [caption, place] = figure.children;
      const { id } = plots.roots()[Number(place.id.replace('plot-', ''))];
      const picture = new Image();
      picture.src = Bokeh.index.get_by_id(id).export('png').canvas.toDataURL();
      picture.alt = caption.textContent;
      const copy = figure.cloneNode();
      copy.append(caption.cloneNode(true), picture);
      sheet.append(copy);
    }
    part.after(sheet);
  }
  chooseJoint(chosen);
  for (const part of partsOfJoints()) part.hidden = false;
}

function paint() {
  if (!plots) return;
  const dark = root.dataset.theme === 'dark' && !printing;
  const [ink, line, soft] = INK[dark ? 'dark' : 'light'];
  const colours = {
    major_label_text_color: ink, axis_label_text_color: ink, // of axes
    axis_line_color: soft, major_tick_line_color: soft,
    grid_line_color: line,
    label_text_color: ink, inactive_fill_color: dark ? '#16202f' : '#ffffff', // of legends
  };
  for (const plot of plots.roots()) {
    for (const part of [...plot.below, ...plot.left, ...plot.above, ...plot.center]) {
      for (const [name, colour] of Object.entries(colours)) if (name in part) part[name] = colour;
      if ('label_text_color' in part) part.background_fill_color = null;
    }
  }
}

// -- theme --------------------------------------------------------------------------------------
const button = document.getElementById('theme');
const wanted = matchMedia('(prefers-color-scheme: dark)');

function setTheme(name) {
  root.dataset.theme = name;
  button.setAttribute('aria-pressed', String(name === 'dark'));
  paint();
}

// What was chosen once is kept, for all pages, where the browser keeps anything.
function kept(name) {
  try {
    if (name) localStorage.setItem('robotid-theme', name);
    return localStorage.getItem('robotid-theme');
  } catch {
    return null;
  }
}
setTheme(kept() ?? (wanted.matches ? 'dark' : 'light'));
wanted.addEventListener('change', (e) => kept() ?? setTheme(e.matches ? 'dark' : 'light'));
button.addEventListener('click', () => {
  setTheme(root.dataset.theme === 'dark' ? 'light' : 'dark');
  kept(root.dataset.theme);
});

// Print is light, as wide as paper, with everything unfolded, and does not wait for the next frame.
function paintNow() {
  if (plots) for (const view of Bokeh.index.roots) view.paint?.();
}
// Plots keep the size that they were drawn with, and are scaled: another size would leave them empty.
const places = () => [...document.querySelectorAll('figure.plot > div')];
function fitPaper() {
  const shown = places().map((place) => [place, place.clientWidth]);
  beginPrint();
  for (const [place, width] of shown) {
    place.style.width = `${width}px`;
    place.style.zoom = Math.min(1, place.parentElement.clientWidth / width);
  }
}
let before = null;
function beginPrint() {
  if (printing) return;
  printing = true;
  before = { theme: root.dataset.theme, closed: document.querySelectorAll('details:not([open])') };
  for (const each of before.closed) each.open = true;
  root.dataset.theme = 'light';
  paint();
  paintNow();
  printJoints(); // as wide as on the screen: what is drawn anew has not its size yet
  root.classList.add('printing');
}
function endPrint() {
  if (!printing) return;
  printing = false;
  for (const each of before.closed) each.open = false;
  root.classList.remove('printing');
  for (const place of places()) place.style.width = place.style.zoom = '';
  for (const sheet of document.querySelectorAll('.sheet')) sheet.remove();
  if (chooser) chooseJoint(Number(chooser.value));
  setTheme(before.theme);
}
addEventListener('beforeprint', fitPaper);
addEventListener('afterprint', endPrint);
matchMedia('print').addEventListener('change', (e) => (e.matches ? beginPrint() : endPrint()));

// -- time window of all joints, for the keyboard too ----------------------------------------------
function linkWindow() {
  const form = document.querySelector('.window');
  const range = plots.get_model_by_name('time');
  if (!form || !range) return;
  const [from, to] = form.querySelectorAll('input');
  const show = () => {
    from.value = range.start.toFixed(2);
    to.value = range.end.toFixed(2);
  };
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('change', () => {
    const [start, end] = [Number(from.value), Number(to.value)];
    if (end > start) range.setv({ start, end });
    else show();
  });
  form.querySelector('button').addEventListener('click', () => range.reset());
  range.change.connect(show);
  // A drag fixes the other axis as it was: it follows what is shown.
  const linked = plots.roots().filter((plot) => plot.x_range === range);
  range.change.connect(() => setTimeout(() => linked.forEach((plot) => plot.y_range.reset())));
  show();
}

// -- views of the arm ---------------------------------------------------------------------------
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
function set(node, attributes) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
}
function make(name, attributes, text) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  set(node, attributes);
  if (text) node.textContent = text;
  return node;
}

// What is around `centre`, as far as `reach`, in a circle of `size` around `middle`; sliders, the
// pointer and arrow keys turn it, and `draw` it anew with the view.
function turntable(box, { centre, reach }, middle, size, draw) {
  const svg = box.querySelector('svg');
  const [around, above] = box.querySelectorAll('.turn input');
  const scale = size / reach;
  function show() {
    const [a, e] = [around, above].map((slider) => (slider.value * Math.PI) / 180);
    const right = [-Math.sin(a), Math.cos(a), 0];
    const up = [-Math.sin(e) * Math.cos(a), -Math.sin(e) * Math.sin(a), Math.cos(e)];
    const near = [Math.cos(e) * Math.cos(a), Math.cos(e) * Math.sin(a), Math.sin(e)];
    const place = (p) => {
      const d = p.map((value, i) => value - centre[i]);
      return [middle[0] + scale * dot(right, d), middle[1] - scale * dot(up, d)];
    };
    draw({ right, up, near, scale, place });
  }
  function turn(degrees, higher) {
    around.value = ((Number(around.value) + degrees + 540) % 360) - 180;
    above.value = Number(above.value) + higher;
    show();
  }
  const keys = { ArrowLeft: [5, 0], ArrowRight: [-5, 0], ArrowUp: [0, -5], ArrowDown: [0, 5] };
  svg.addEventListener('keydown', (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    turn(...keys[event.key]);
  });
  svg.addEventListener('pointerdown', (event) => svg.setPointerCapture(event.pointerId));
  svg.addEventListener('pointermove', (event) => {
    if (svg.hasPointerCapture(event.pointerId)) turn(-event.movementX, event.movementY);
  });
  for (const slider of [around, above]) slider.addEventListener('input', show);
  show();
}

// -- bodies: ellipsoids of the same mass and inertia on the arm ----------------------------------
const MIDDLE = 210;
const [LETTER, ROW] = [7, 13]; // of names, at most and at least
function turnBodies(box) {
  const scene = JSON.parse(box.querySelector('script').textContent);
  const { links } = scene;
  const svg = box.querySelector('svg');

  function draw({ right, up, scale, place }) {
    const nodes = [make('polyline', { points: links.map((l) => place(l.origin)).join(' ') })];
    for (const link of links) {
      // From red, nothing is known, to green, all is; grey where the motion shows no parameter.
      const colour = link.known === null ? '#888' : `hsl(${Math.round(120 * link.known)} 75% 40%)`;
      const looks = { before: {}, found: { fill: colour, stroke: colour } };
      for (const [kind, look] of Object.entries(looks).filter(([name]) => link[name])) {
        const { shape, centre } = link[kind];
        // The shadow of x'S⁻¹x = 1 is the ellipse of PSP'.
        const times = (v) => shape.map((row) => dot(row, v));
        const [xx, xy, yy] = [dot(right, times(right)), -dot(right, times(up)), dot(up, times(up))];
        const mean = (xx + yy) / 2;
        const spread = Math.hypot((xx - yy) / 2, xy);
        const angle = (Math.atan2(2 * xy, xx - yy) * 90) / Math.PI;
        const [x, y] = place(centre);
        nodes.push(make('ellipse', {
          ...look, class: kind, cx: x, cy: y, transform: `rotate(${angle} ${x} ${y})`,
          rx: scale * Math.sqrt(mean + spread), ry: scale * Math.sqrt(Math.max(mean - spread, 0)),
        }));
      }
    }
    // A name that would cover another one moves below it.
    const names = [];
    for (const link of links) {
      const [x, y] = place(link.origin);
      nodes.push(make('circle', { cx: x, cy: y, r: 4 }));
      const text = link.name + (link.known === null ? '' : ` ${Math.round(100 * link.known)} %`);
      const width = LETTER * text.length;
      const name = { left: x > MIDDLE ? x - 8 - width : x + 8, width, row: y - 6 };
      const covers = (other) => Math.abs(other.row - name.row) < ROW - 1
        && other.left < name.left + width && name.left < other.left + other.width;
      for (let other = names.find(covers); other; other = names.find(covers)) {
        name.row = other.row + ROW;
      }
      names.push(name);
      const side = x > MIDDLE ? { x: x - 8, 'text-anchor': 'end' } : { x: x + 8 };
      nodes.push(make('text', { ...side, y: name.row }, text));
    }
    svg.replaceChildren(svg.querySelector('title'), ...nodes);
  }
  turntable(box, scene, [MIDDLE, MIDDLE], 190, draw);
}
for (const box of document.querySelectorAll('.bodies')) turnBodies(box);

const embedded = embed();
