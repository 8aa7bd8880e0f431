/** Where the agent is root a guest runs as a separate user, which reaches nothing of another guest. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { GuestDisk, Hypervisor } from '../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { guestPath, hostPath, letPass, userIn } from '../../../agents/node/drivers/hypervisor/guest-users.ts'
import { isRoot } from '../../../kit/sys/process.ts'
import { openQemuMachine, USER_RANGE } from './qemu-machine.ts'

const [A, B] = ['6f1c9f0e-5b0a-4c51-9d53-0c9a3c1f7a11', 'a7c7f2d4-1f0b-4e0e-8c3c-5f1d2b3c4d5e']

describe.runIf(isRoot())('guests of an agent that is root', () => {
  let machine: Awaited<ReturnType<typeof openQemuMachine>>
  let hypervisor: Hypervisor
  const host = () => machine.host(0)
  const pidOf = async (name: string) => Number(await readFile(join(host().guestFolder(name), 'qemu.pid'), 'utf8'))
  const idsOf = async (name: string, what: 'Uid' | 'Gid' | 'Groups') =>
    new RegExp(`^${what}:(.*)$`, 'm')
      .exec(await readFile(`/proc/${await pidOf(name)}/status`, 'utf8'))?.[1]
      ?.trim()
      .split(/\s+/)
      .map(Number)
  /** Whether the guest's process could open the file: somebody with all its ids, among its descriptors. */
  const mayOpen = (name: string, path: string) =>
    spawnSync('setpriv', [...becoming(name), 'head', '-c1', path]).status === 0
  const becoming = (name: string) => {
    const id = userIn(USER_RANGE, name)
    return [`--reuid=${id}`, `--regid=${id}`, '--clear-groups', '--']
  }

  beforeEach(async () => {
    machine = await openQemuMachine()
    hypervisor = await host().attach()
  })
  afterEach(async () => {
    for (const name of [A, B]) await hypervisor.forget(name)
    await hypervisor.close()
    await machine.close()
  })

  it('run as separate users, without rights and without a way to gain any', async () => {
    await hypervisor.start(await machine.definition(A, 1, 'own-0'))
    await hypervisor.start(await machine.definition(B, 1, 'own-1'))
    const status = await readFile(`/proc/${await pidOf(A)}/status`, 'utf8')
    const [one, other] = [userIn(USER_RANGE, A), userIn(USER_RANGE, B)]
    expect(one).not.toBe(other)
    expect(await idsOf(A, 'Uid')).toEqual(Array(4).fill(one))
    expect(await idsOf(B, 'Uid')).toEqual(Array(4).fill(other))
    expect(await idsOf(A, 'Gid')).toEqual(Array(4).fill(one))
    expect(status).toMatch(/^CapEff:\s+0+$/m)
    expect(status).toMatch(/^CapBnd:\s+0+$/m)
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m)
    expect(status).toMatch(/^Seccomp:\s+2$/m)
  })

  it('reach their own disk and not another one, not even through the folders that they inherit', async () => {
    const [own, foreign] = await Promise.all([machine.definition(A, 1, 'own-0'), machine.definition(B, 1, 'own-1')])
    await hypervisor.start(own)
    await hypervisor.start(foreign)
    const pid = await pidOf(A)
    const through = (disk: GuestDisk | undefined) => {
      const user = { id: 0, folders: host().folders }
      return guestPath(user, disk?.path ?? '').replace('/proc/self/', `/proc/${pid}/`)
    }
    const [mine, yours] = [through(own.disks[0]), through(foreign.disks[0])]
    expect(mine).toMatch(/^\/proc\/\d+\/fd\/\d+\/own-0\.qcow2$/)
    expect(mayOpen(A, mine)).toBe(true)
    expect(mayOpen(A, yours)).toBe(false)
    expect(mayOpen(B, yours.replace(`${pid}`, `${await pidOf(B)}`))).toBe(true)
  })

  it('make nothing in their folders once they run, where the agent reads and writes', async () => {
    await hypervisor.start(await machine.definition(A, 1, 'own-0'))
    const { mode, uid } = await stat(host().guestFolder(A))
    expect({ mode: mode & 0o777, uid }).toEqual({ mode: 0o710, uid: 0 })
    const made = `/proc/${await pidOf(A)}/cwd/made`
    expect(spawnSync('setpriv', [...becoming(A), 'touch', made]).status).toBe(1)
    expect(await readdir(host().guestFolder(A))).not.toContain('made')
  })

  it('get disks while they run, which belong to nobody of them afterwards', async () => {
    await hypervisor.start(await machine.definition(A, 1, 'own-0'))
    const disk = await machine.disk()
    await hypervisor.plugDisk(A, disk)
    expect((await stat(disk.path)).uid).toBe(userIn(USER_RANGE, A))
    expect((await hypervisor.inspect(A))?.disks).toContain(disk.path)
    // The agent may end meanwhile: the next one knows the disk by its path.
    await hypervisor.close()
    hypervisor = await host().attach()
    expect((await hypervisor.inspect(A))?.disks).toContain(disk.path)
    await hypervisor.unplugDisk(A, disk.path, true)
    expect((await hypervisor.inspect(A))?.disks).not.toContain(disk.path)
    expect([0, userIn(USER_RANGE, A), userIn(USER_RANGE, B)]).not.toContain((await stat(disk.path)).uid)
  })

  it('keep running as root when an earlier agent started them, and get disks of guests that have users', async () => {
    await hypervisor.close()
    const old = await host().attach({ range: undefined })
    await old.start(await machine.definition(B, 1, 'own-1'))
    await old.close()
    hypervisor = await host().attach()
    expect(await hypervisor.inspect(B)).toMatchObject({ state: 'running', isResponsive: true })
    expect(await idsOf(B, 'Uid')).toEqual([0, 0, 0, 0])
    const disk = await machine.disk()
    await hypervisor.start(await machine.definition(A, 1, 'own-0'))
    await hypervisor.plugDisk(A, disk)
    await hypervisor.unplugDisk(A, disk.path, true)
    await hypervisor.plugDisk(B, disk)
    expect((await hypervisor.inspect(B))?.disks).toContain(disk.path)
    await hypervisor.destroy(B)
    await hypervisor.start(await machine.definition(B, 2, 'own-1'))
    expect(await idsOf(B, 'Uid')).toEqual(Array(4).fill(userIn(USER_RANGE, B)))
  })
})

it('names files by the folders that the process inherits, and finds them again', () => {
  const user = { id: 7, folders: ['/data/volumes', '/images'] }
  expect(guestPath(user, '/images/tiny/1/vmlinuz')).toBe('/proc/self/fd/4/tiny/1/vmlinuz')
  expect(hostPath(user, '/proc/self/fd/4/tiny/1/vmlinuz')).toBe('/images/tiny/1/vmlinuz')
  expect(guestPath(user, '/data/volumes-of-others/a')).toBe('/data/volumes-of-others/a')
  expect(hostPath(user, '/proc/self/fd/40/a')).toBe('/proc/self/fd/40/a')
  expect(guestPath(undefined, '/images/a')).toBe('/images/a')
})

it('closes every file of a folder before it lets others pass', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-pass-'))
  try {
    const volumes = join(folder, 'volumes')
    await mkdir(volumes, { mode: 0o700 })
    await writeFile(join(volumes, 'disk.qcow2'), '', { mode: 0o644 })
    execFileSync('chmod', ['644', join(volumes, 'disk.qcow2')])
    await letPass(volumes)
    const modeOf = async (path: string) => (await stat(path)).mode & 0o777
    expect(await modeOf(join(volumes, 'disk.qcow2'))).toBe(isRoot() ? 0o600 : 0o644)
    expect(await modeOf(volumes)).toBe(isRoot() ? 0o711 : 0o700)
  } finally {
    await rm(folder, { recursive: true })
  }
})
