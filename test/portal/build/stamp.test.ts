import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { inputsDigest } from '../../../portal/build/stamp.ts'

let root = ''
const write = async (path: string, content: string): Promise<void> => {
  await mkdir(dirname(join(root, path)), { recursive: true })
  await writeFile(join(root, path), content)
}

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'svccloud-stamp-'))
  for (const path of ['portal/main.tsx', 'client/index.ts', 'domain/defined.ts', 'package-lock.json', 'tsconfig.json'])
    await write(path, 'a')
})
afterAll(() => rm(root, { recursive: true, force: true }))

it.each([
  ['portal/main.tsx', 'b'],
  ['portal/nouns/server/index.ts', ''],
  ['portal/public/theme.js', 'a'],
  ['portal/build/vite.config.ts', 'a'],
  ['client/index.ts', 'b'],
  ['domain/operations.ts', 'a'],
  ['package-lock.json', 'b'],
  ['tsconfig.json', 'b'],
])('a change of %s is built', async (path, content) => {
  const before = await inputsDigest(root)
  await write(path, content)
  expect(await inputsDigest(root)).not.toBe(before)
})

it.each([
  'portal/dist/index.html',
  'portal/dist.next/index.html',
  'portal/dist.lock',
  'portal/node_modules/react/index.js',
  'portal/portal.tsbuildinfo',
  'apiserver/main.ts',
])('a change of %s is not', async (path) => {
  const before = await inputsDigest(root)
  await write(path, 'a')
  expect(await inputsDigest(root)).toBe(before)
})
