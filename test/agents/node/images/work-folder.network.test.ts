/** What killed builds of images leave, with real mounts. */
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { inWorkFolder } from '../../../../agents/node/images/work-folder.ts'
import { runProgram } from '../../../../agents/node/run-program.ts'
import { readMounts } from '../../../../kit/sys/mounts.ts'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-work-'))
})
const mountsBelow = async () =>
  (await readMounts()).map(({ path }) => path).filter((path) => path.startsWith(`${folder}/`))
afterEach(async () => {
  for (const path of (await mountsBelow()).toReversed()) await runProgram('umount', [path])
  await rm(folder, { recursive: true })
})

/** As a build leaves it whose processes were killed. */
async function abandon(work: string): Promise<string> {
  const root = join(folder, work, 'root')
  for (const each of ['proc', 'dev']) await mkdir(join(root, each), { recursive: true })
  await runProgram('mount', ['-t', 'proc', 'proc', join(root, 'proc')])
  await runProgram('mount', ['-t', 'tmpfs', 'tmpfs', join(root, 'dev')])
  await mkdir(join(root, 'dev', 'pts'))
  await runProgram('mount', ['-t', 'tmpfs', 'tmpfs', join(root, 'dev', 'pts')])
  return root
}

test('a build removes what killed builds of its template left, with all mounts, and nothing else', async () => {
  await abandon('work-debian-13-aaaaaa')
  const others = [await abandon('work-debian-13-next-bbbbbb'), await abandon('work-tiny-linux-cccccc')]
  const kept = await mountsBelow()
  let seen: readonly string[] = []
  await inWorkFolder(folder, 'debian-13', async (work) => {
    await writeFile(join(work, 'image'), '')
    seen = await readdir(folder)
  })
  expect(seen).toHaveLength(3)
  expect(seen).not.toContain('work-debian-13-aaaaaa')
  expect((await readdir(folder)).toSorted()).toEqual(['work-debian-13-next-bbbbbb', 'work-tiny-linux-cccccc'])
  expect(await mountsBelow()).toEqual(kept.filter((path) => others.some((root) => path.startsWith(root))))
})

test('the error of a build that leaves something mounted is its cause', async () => {
  const failing = inWorkFolder(folder, 'debian-13', async (work) => {
    await mkdir(join(work, 'proc'))
    await runProgram('mount', ['-t', 'proc', 'proc', join(work, 'proc')])
    throw new Error('a package is missing')
  })
  await expect(failing).rejects.toThrow('a package is missing')
  expect([await readdir(folder), await mountsBelow()]).toEqual([[], []])
})
