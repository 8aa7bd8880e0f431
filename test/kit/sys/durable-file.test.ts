import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { writeDurably, writeParts } from '../../../kit/sys/durable-file.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'durable-file-'))
})
afterEach(() => rm(folder, { recursive: true }))

it('replaces a file as a whole and for its owner only', async () => {
  const file = join(folder, 'secret')
  await writeFile(file, 'old and longer', { mode: 0o644 })
  await writeDurably(file, 'new')
  expect(await readFile(file, 'utf8')).toBe('new')
  expect((await stat(file)).mode & 0o777).toBe(0o600)
})

it('lets several write at once: one of them stays, whole, and nothing else', async () => {
  const contents = Array.from({ length: 8 }, (_, writer) => `${writer}`.repeat(100_000))
  await Promise.all(contents.map((content) => writeDurably(join(folder, 'shared'), content)))
  expect(contents).toContain(await readFile(join(folder, 'shared'), 'utf8'))
  expect(await readdir(folder)).toEqual(['shared'])
})

it('leaves nothing behind when the file cannot be replaced', async () => {
  await mkdir(join(folder, 'taken', 'inside'), { recursive: true })
  await expect(writeDurably(join(folder, 'taken'), 'new')).rejects.toThrow('EISDIR')
  expect(await readdir(folder)).toEqual(['taken'])
})

it('writes parts, and a file that failed does not appear after its removal', async () => {
  const file = join(folder, 'parts')
  await writeParts(file, Readable.from([Buffer.from('one, '), Buffer.from('two')]))
  expect(await readFile(file, 'utf8')).toBe('one, two')
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  const failing = Readable.from([Buffer.from('three')]).map(() => Promise.reject(new Error('no part')))
  await expect(writeParts(file, failing)).rejects.toThrow('no part')
  await rm(file)
  expect(await readdir(folder)).toEqual([])
  await expect(writeParts(file, Readable.from([Buffer.from('four')]))).resolves.toBeUndefined()
  expect(await readFile(file, 'utf8')).toBe('four')
})
