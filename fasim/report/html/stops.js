// --- stops: where to stop, as a person writes it --------------------------------------------------------------------------------------

const STOPS = ["conflict", "hazard", "nan", "nan any", "barrier", "line 1", "step NAME", "reg %r1", "mem 0x0"];

/** A test of (event, code) for a text: one of STOPS with its values, or any text that stands in the PTX or the source line. */
function stopTest(text, facts) {
  const [what, first = "", ...more] = text.trim().split(/\s+/);
  const lineText = (code) => code.path.map(([file, line]) => facts.files[file].lines[line - 1] ?? "").join("\n");
  switch (what) {
    case "conflict": return (event) => (event.access?.conflicts ?? 0) >= Number(first || 1);
    case "hazard": return (event) => (event.hazards ?? []).some((hazard) => !first || hazard.kind.includes(first));
    case "nan": return first === "any" ? (event) => Boolean(event.nan_lanes) : (event) => Boolean(event.new_nan_lanes);
    case "barrier": return (event, code) => code.barrier;
    case "step": return (event, code) => code.step === [first, ...more].join(" ");
    case "line":
      if (/^\d+$/.test(first)) return (event, code) => code.path.some(([, line]) => line === Number(first));
      break;
    case "reg":
      if (first.startsWith("%")) return (event) => (event.changed ?? []).some(([name, , , , lanes]) => name === first && maskOf(lanes) !== 0);
      break;
    case "mem": {
      const offset = Number(first === "shared" ? more[0] : first);
      if (Number.isInteger(offset)) return (event) => touchesWord(event.shared, Math.floor(offset / 4));
      break;
    }
  }
  // what no PTX says is looked for in the source
  const wanted = facts.code.map((code) => code.text.includes(text));
  return wanted.includes(true) ? (event) => wanted[event.pc] : (event, code) => lineText(code).includes(text);
}

function touchesWord(runs = [], word) {
  for (let i = 0; i < runs.length; i += 2) if (runs[i] <= word && word < runs[i] + runs[i + 1].length / 8) return true;
  return false;
}
