import { Readable } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readLines, readWhole, TooLong } from '../../../kit/http/bounded.ts'

const streamOf = (...texts: readonly string[]) => Readable.from(texts.map((text) => Buffer.from(text)))
const endless = () =>
  Readable.from(
    (function* () {
      for (;;) yield Buffer.alloc(1_000, 'x')
    })(),
  )

const collect = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

describe('a whole body', () => {
  it('is read up to its bound', async () => {
    expect((await readWhole(streamOf('ab', 'cd'), 4)).toString()).toBe('abcd')
  })
  it('ends the stream beyond it', async () => {
    const stream = endless()
    await expect(readWhole(stream, 10_000)).rejects.toThrow(TooLong)
    expect(stream.destroyed).toBe(true)
  })
})

describe('lines', () => {
  it('are the same however the bytes arrive', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\n', ''))),
        fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }),
        async (lines, cuts) => {
          const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''))
          const chunks: Buffer[] = []
          for (let at = 0; at < bytes.length; at += chunks.at(-1)?.length ?? 0)
            chunks.push(bytes.subarray(at, at + (cuts[chunks.length % cuts.length] ?? 1)))
          expect(await collect(readLines(Readable.from(chunks), 10_000))).toEqual(lines)
        },
      ),
    )
  })
  it('have a bound each, and what follows the last end is none', async () => {
    expect(await collect(readLines(streamOf('abc\nde', 'f\ngh'), 3))).toEqual(['abc', 'def'])
    await expect(collect(readLines(streamOf('abcd\n'), 3))).rejects.toThrow(TooLong)
  })
  it('without an end close the stream', async () => {
    const stream = endless()
    await expect(collect(readLines(stream, 10_000))).rejects.toThrow(TooLong)
    expect(stream.destroyed).toBe(true)
  })
})
