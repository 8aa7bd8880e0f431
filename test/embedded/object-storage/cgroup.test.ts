/** Which bounds hold for engines, and that it is said. The kernel's part is made by a plain folder here. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { inGroup, openBounds } from '../../../embedded/object-storage/cgroup.ts'

async function openFolder(controllers: string) {
  const folder = await mkdtemp(join(tmpdir(), 'cgroup-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await mkdir(join(folder, 'unit'))
  await writeFile(join(folder, 'unit', 'cgroup.controllers'), controllers)
  const mounts = `30 20 0:1 / ${folder} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n`
  return { folder: join(folder, 'unit'), mounts }
}

test('each engine has a group of its own below that of this process, where it may make one', async () => {
  const { folder, mounts } = await openFolder('cpu memory pids\n')
  // The kernel removes what a group has with it.
  const trial = openBounds({ own: '0::/unit\n', mounts })
  const bounds = await trial
  expect([bounds.kind, bounds.text]).toEqual(['rlimit', expect.stringContaining('ENOTEMPTY')])
  expect(await readFile(join(folder, 'cgroup.subtree_control'), 'utf8')).toBe('+memory +pids')
  const [group = ''] = (await readdir(folder)).filter((name) => name.startsWith('svccloud-engine-'))
  expect(await readFile(join(folder, group, 'memory.max'), 'utf8')).toBe(String(512 * 1024 ** 2))
  expect(await readFile(join(folder, group, 'pids.max'), 'utf8')).toBe('1024')
})

test.each([
  ['no group of version 2', { own: '4:memory:/x\n', mounts: '' }, 'this machine has none of version 2'],
  ['a group that is not there', { parent: '/nowhere/at/all' }, 'ENOENT'],
])('otherwise the limits of the process hold, and it is said why: %s', async (_name, options, reason) => {
  const bounds = await openBounds(options)
  expect(bounds.kind).toBe('rlimit')
  expect(bounds.text).toContain(reason)
  expect(await bounds.make('1')).toBeUndefined()
})

test('controllers that are missing are named', async () => {
  const { mounts } = await openFolder('cpu\n')
  const bounds = await openBounds({ own: '0::/unit\n', mounts })
  expect(bounds.text).toContain('has no controller memory and pids')
})

test('a command joins its group before it is anything else', () => {
  expect(inGroup(undefined, ['a'])).toEqual(['a'])
  expect(inGroup('/g', ['a', 'b'])).toEqual([
    ...['sh', '-c', 'echo 0 >"$1/cgroup.procs"; shift; exec "$@"', 'sh', '/g', 'a', 'b'],
  ])
})
