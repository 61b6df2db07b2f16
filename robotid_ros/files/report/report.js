'use strict';
// Behaviour of the page: plots, joint.
const store = document.getElementById('plots');
let plots = null;
let joints = [];

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
  // A drag in time fixes the other axis as it was: it follows what is shown.
  const time = plots.get_model_by_name('time');
  const linked = plots.roots().filter((plot) => plot.x_range === time);
  time?.change.connect(() => setTimeout(() => linked.forEach((plot) => plot.y_range.reset())));
  return data;
}

// The joint that all plots show.
const chooser = document.querySelector('.choose select');
chooser?.addEventListener('change', () => chooseJoint(Number(chooser.value)));

function chooseJoint(k, all = plots) {
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

const embedded = embed();
