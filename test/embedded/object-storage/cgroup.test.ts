/** Which bounds hold for engines, and that it is said. A plain folder stands for the kernel's part, but for the last
 *  test, which needs a group of version 2 that it may divide. */
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ENGINE_MEMORY_BYTES, ENGINE_THREADS, inGroup, openBounds } from '../../../embedded/object-storage/cgroup.ts'

async function openFolder(controllers: string) {
  const folder = await mkdtemp(join(tmpdir(), 'cgroup-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await mkdir(join(folder, 'unit'))
  await writeFile(join(folder, 'unit', 'cgroup.controllers'), controllers)
  const mounts = `30 20 0:1 / ${folder} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n`
  return { folder: join(folder, 'unit'), mounts }
}

test('each engine has a separate group below that of this process, where it may make one', async () => {
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
    'sh',
    '-c',
    'echo 0 >"$1/cgroup.procs"; shift; exec "$@"',
    'sh',
    '/g',
    'a',
    'b',
  ])
})

/** A group for this run below the root of version 2, or why there is none. */
async function openGroup(): Promise<{ readonly group: string } | { readonly lack: string }> {
  const mounts = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '')
  const root = mounts
    .split('\n')
    .find((line) => / - cgroup2 /.test(line))
    ?.split(' ')[4]
  if (root === undefined) return { lack: 'no control groups of version 2' }
  const group = join(root, `svccloud-bounds-${process.pid}`)
  try {
    await mkdir(group)
  } catch (error) {
    return { lack: `no group can be made: ${String(error)}` }
  }
  const controllers = (await readFile(join(group, 'cgroup.controllers'), 'utf8')).trim().split(/\s+/)
  const missing = ['memory', 'pids'].filter((name) => !controllers.includes(name))
  if (missing.length === 0) return { group }
  await rmdir(group)
  return { lack: `groups of version 2 have no controller ${missing.join(' and ')}` }
}

test('the kernel keeps an engine to its bounds', async ({ skip }) => {
  const found = await openGroup()
  if ('lack' in found) return skip(found.lack)
  const bounds = await openBounds({ parent: found.group })
  expect(bounds.kind).toBe('cgroup')
  const group = (await bounds.make('1')) ?? ''
  onTestFinished(async () => {
    await writeFile(join(group, 'cgroup.kill'), '1')
    await expect.poll(() => readFile(join(group, 'cgroup.procs'), 'utf8')).toBe('')
    await bounds.remove(group)
    await rmdir(found.group)
  })
  expect(await readFile(join(group, 'memory.max'), 'utf8')).toBe(`${ENGINE_MEMORY_BYTES}\n`)
  expect(await readFile(join(group, 'pids.max'), 'utf8')).toBe(`${ENGINE_THREADS}\n`)
  const hits = async (controller: 'memory' | 'pids') =>
    Number(/^max (\d+)$/m.exec(await readFile(join(group, `${controller}.events`), 'utf8'))?.[1])
  const run = (script: string) =>
    new Promise<void>((resolve) => {
      const [command = '', ...rest] = inGroup(group, ['sh', '-c', script])
      spawn(command, rest, { stdio: 'ignore' }).once('close', () => resolve())
    })
  await run(`for number in $(seq ${ENGINE_THREADS + 10}); do sleep 60 & done`)
  expect(await hits('pids')).toBeGreaterThan(0)
  await writeFile(join(group, 'cgroup.kill'), '1')
  await run(`head -c ${ENGINE_MEMORY_BYTES * 2} /dev/zero | tail -n 1`)
  expect(await hits('memory')).toBeGreaterThan(0)
})
