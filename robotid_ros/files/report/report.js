'use strict';
// Behaviour of the page: plots, joint, colours, print.

const root = document.documentElement;
const store = document.getElementById('plots');
const INK = { light: ['#1e293b', '#d5dce6', '#526075'], dark: ['#e6ebf2', '#334155', '#a9b5c6'] };
let plots = null;
let joints = [];

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
  joints = data.joints;
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
  // A drag in time fixes the other axis as it was: it follows what is shown.
  const time = plots.get_model_by_name('time');
  const linked = plots.roots().filter((plot) => plot.x_range === time);
  time?.change.connect(() => setTimeout(() => linked.forEach((plot) => plot.y_range.reset())));
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

function paint() {
  if (!plots) return;
  const dark = root.dataset.theme === 'dark';
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

// -- colours of the system ----------------------------------------------------------------------
const wanted = matchMedia('(prefers-color-scheme: dark)');
function setTheme(dark) {
  root.dataset.theme = dark ? 'dark' : 'light';
  paint();
}
setTheme(wanted.matches);
wanted.addEventListener('change', (e) => setTheme(e.matches));

// -- print: light, as wide as paper, with everything unfolded ------------------------------------
let folded = null; // what was folded, while the page is printed
function beginPrint() {
  if (folded) return;
  folded = [...document.querySelectorAll('details:not([open])')];
  for (const each of folded) each.open = true;
  setTheme(false);
  // Print does not wait for the next frame. Plots keep the size that they were drawn with, and are
  // scaled: another size would leave them empty.
  if (plots) for (const view of Bokeh.index.roots) view.paint?.();
  const shown = places().map((place) => [place, place.clientWidth]);
  root.classList.add('printing');
  for (const [place, width] of shown.filter(([, width]) => width)) {
    place.style.width = `${width}px`;
    place.style.zoom = Math.min(1, place.parentElement.clientWidth / width);
  }
}
function endPrint() {
  if (!folded) return;
  for (const each of folded) each.open = false;
  root.classList.remove('printing');
  for (const place of places()) place.style.width = place.style.zoom = '';
  folded = null;
  setTheme(wanted.matches);
}
const places = () => [...document.querySelectorAll('figure.plot > div')];
addEventListener('beforeprint', beginPrint);
addEventListener('afterprint', endPrint);
matchMedia('print').addEventListener('change', (e) => (e.matches ? beginPrint() : endPrint()));

const embedded = embed();
