import { chmod, chown, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { isRunByRootSafely } from '../../../kit/sys/own-files.ts'
import { isRoot } from '../../../kit/sys/process.ts'

let home: string
let folder: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svccloud-own-'))
  folder = join(home, 'programs')
  await mkdir(join(folder, 'bin'), { recursive: true })
  await writeFile(join(folder, 'bin', 'ovs'), '', { mode: 0o755 })
})
afterEach(() => rm(home, { recursive: true }))
const SOMEBODY = 65_534

test.runIf(isRoot())(
  'root runs what belongs to root, also through links, and links to nothing do not matter',
  async () => {
    await symlink('ovs', join(folder, 'bin', 'ovs-2'))
    await symlink('/dev/null', join(folder, 'bin', 'disabled'))
    await symlink('nothing', join(folder, 'bin', 'gone'))
    await symlink(folder, join(home, 'link'))
    expect(await isRunByRootSafely(folder)).toBe(true)
    expect(await isRunByRootSafely(join(home, 'link'))).toBe(true)
  },
)

test.runIf(isRoot()).each<[string, () => Promise<string>]>([
  ['a file of somebody', async () => (await chown(join(folder, 'bin', 'ovs'), SOMEBODY, SOMEBODY), folder)],
  ['a file that others write', async () => (await chmod(join(folder, 'bin', 'ovs'), 0o777), folder)],
  ['a folder that others write', async () => (await chmod(join(folder, 'bin'), 0o777), folder)],
  [
    'a link to a folder that others write',
    async () => {
      await chmod(folder, 0o777)
      await symlink(folder, join(home, 'link'))
      return join(home, 'link')
    },
  ],
  [
    'a link to a file of somebody elsewhere',
    async () => {
      await writeFile(join(home, 'theirs'), '', { mode: 0o755 })
      await chown(join(home, 'theirs'), SOMEBODY, SOMEBODY)
      await symlink(join(home, 'theirs'), join(folder, 'bin', 'ovs-2'))
      return folder
    },
  ],
])('root does not run %s', async (_what, spoilt) => expect(await isRunByRootSafely(await spoilt())).toBe(false))

test.runIf(isRoot())('a folder that cannot be read is an error', async () => {
  await expect(isRunByRootSafely(join(folder, 'bin', 'ovs'))).rejects.toThrow('ENOTDIR')
})
