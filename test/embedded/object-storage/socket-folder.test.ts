import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { makeSocketFolder, removeSocketFolder } from '../../../embedded/object-storage/socket-folder.ts'

async function dataFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-sockets-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

test('the next start removes what one that was killed has left', async () => {
  const folder = await dataFolder()
  const first = await makeSocketFolder(folder)
  await writeFile(join(first, 's3'), '')
  const second = await makeSocketFolder(folder)
  expect(second).not.toBe(first)
  expect([first, second].map(existsSync)).toEqual([false, true])
  await removeSocketFolder(folder)
  expect(existsSync(second)).toBe(false)
})

test('a link that leads elsewhere removes nothing', async () => {
  const folder = await dataFolder()
  const precious = join(folder, 'svccloud-s3-precious')
  await mkdir(precious)
  await symlink(precious, join(folder, 'sockets'))
  await removeSocketFolder(folder)
  expect(existsSync(precious)).toBe(true)
})
