// --- numbers: register values and elements as short text ---------------------------------------------------------------------------

const LANES = Array.from({length: 32}, (_, lane) => lane);
const FORMS = ["value", "hex", "signed", "f16x2", "bf16x2", "f32"];

const hasLane = (mask, lane) => (mask >>> lane & 1) === 1;
const lanesOf = (mask) => LANES.filter((lane) => hasLane(mask, lane));
const maskOf = (text) => Number.parseInt(text, 16) >>> 0;

/** Ascending numbers in a short form: 0-7,12. */
function ranges(numbers) {
  const parts = [];
  for (const number of numbers) {
    const last = parts.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else parts.push([number, number]);
  }
  return parts.map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(",");
}

/** Mantissa and exponent in some significant digits; a tie goes to the even digit, as Python rounds. */
function rounded(number, count) {
  const [mantissa, exponent] = number.toExponential(count - 1).split("e");
  const [exact, own] = number.toExponential(100).split("e");
  const digits = exact.replace(/^-/, "").replace(".", "");
  if (!/^50*$/.test(digits.slice(count)) || Number(digits[count - 1]) % 2) return [mantissa, Number(exponent)];
  return [exact.slice(0, exact.indexOf(".") + count), Number(own)];
}

/** Some significant digits as Python's format has them; power: the exponent as text. */
function general(number, count, power) {
  if (Number.isNaN(number)) return "nan";
  if (!Number.isFinite(number)) return number > 0 ? "inf" : "-inf";
  if (number === 0) return Object.is(number, -0) ? "-0" : "0";
  const [mantissa, places] = rounded(number, count);
  const trim = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  return places < -4 || places >= count ? `${trim(mantissa)}e${power(places)}` : trim(Number(`${mantissa}e${places}`).toFixed(count - 1 - places));
}

/** All digits that a type has: as many as it takes to tell its numbers apart. */
const inFull = (number, count) => general(number, count, (places) => `${places < 0 ? "-" : "+"}${String(Math.abs(places)).padStart(2, "0")}`);

/** Where whole numbers in f32 are no longer next to each other: below, every digit says something. */
const WHOLE = 2 ** 24;

/** Four significant digits; whole numbers below WHOLE in full. */
function short(number) {
  return Number.isInteger(number) && number !== 0 && Math.abs(number) < WHOLE ? String(number) : general(number, 4, String);
}

const view = new DataView(new ArrayBuffer(8));
const f32 = (bits) => (view.setUint32(0, bits), view.getFloat32(0));
const f64 = ([low, high]) => (view.setUint32(0, high), view.setUint32(4, low), view.getFloat64(0));
const bf16 = (bits) => f32(bits << 16);

function f16(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -24 * fraction;
}

const big = ([low, high]) => BigInt(high) << 32n | BigInt(low);

/** How many of 32 bits are not a type's own. */
const above = (type) => 32 - Math.min(32, Number(/^.(\d+)$/.exec(type)?.[1] ?? 32));

/** 32 bits as a number of a type: registers of narrow types have zeros above their own bits. */
const signed = (value, type) => value << above(type) >> above(type);
const unsigned = (value, type) => value << above(type) >>> above(type);

/** One lane of a register: a number, [low, high] of 64 bits, or a boolean. */
function laneText(value, type, form) {
  if (typeof value === "boolean") return value ? "1" : "0";
  const wide = Array.isArray(value);
  if (!wide && FORMS.indexOf(form) > 2) type = form;
  else if (form === "hex") return wide ? big(value).toString(16).padStart(16, "0") : value.toString(16).padStart(8, "0");
  else if (form === "signed" || type.startsWith("s")) return wide ? BigInt.asIntN(64, big(value)).toString() : signed(value, type).toString();
  if (type.startsWith("u")) return wide ? big(value).toString() : unsigned(value, type).toString();
  switch (type) {
    case "f32": return short(f32(value));
    case "f64": return short(f64(value));
    case "f16": return short(f16(value & 0xffff));
    case "bf16": return short(bf16(value & 0xffff));
    case "f16x2": return `${short(f16(value & 0xffff))},${short(f16(value >>> 16))}`;
    case "bf16x2": return `${short(bf16(value & 0xffff))},${short(bf16(value >>> 16))}`;
    default: return `0x${wide ? big(value).toString(16) : value.toString(16)}`;
  }
}

/** One element of a fragment, of `bits` bits that begin at `low` in a register. */
function elementText(value, low, bits, type) {
  if (Array.isArray(value)) return short(f64(value));
  const raw = bits === 32 ? value : value >>> low & (1 << bits) - 1;
  if (type === "f32" || type === "tf32") return short(f32(raw));
  if (type === "f16" || type === "b16") return short(f16(raw));
  if (type === "bf16") return short(bf16(raw));
  if (/^[su]\d+$/.test(type)) return String(type[0] === "s" ? raw << 32 - bits >> 32 - bits : raw);
  return raw.toString(16);
}
