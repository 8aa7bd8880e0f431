/** A guest whose disk cannot grow, because the file system of the host is full. Mounts one, which needs root. */
import { execFile } from 'node:child_process'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Hypervisor } from '../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { hasRoomFor } from '../../../agents/node/instance/room.ts'
import { eventually } from '../../eventually.ts'
import { openQemuMachine } from './qemu-machine.ts'

const run = promisify(execFile)
/** The guest writes more than the one and less than the other. */
const [SMALL, LARGE] = ['size=16m', 'size=256m']
const WRITE = 'dd if=/dev/urandom of=/dev/vdc bs=1M count=40 && sync && echo all-$((1+1))-written\n'

let machine: Awaited<ReturnType<typeof openQemuMachine>>
let hypervisor: Hypervisor
let folder: string
beforeAll(async () => {
  machine = await openQemuMachine()
  folder = join(machine.folder, 'backups')
  await run('mount', ['-t', 'tmpfs', '-o', `${SMALL},mode=711`, 'none', folder])
  hypervisor = await machine.host(0).attach()
})
afterAll(async () => {
  await hypervisor?.forget('a')
  await hypervisor?.close()
  await run('umount', [folder]).catch(() => undefined)
  await machine?.close()
})

const isFull = async () => (await hypervisor.inspect('a'))?.isDiskFull === true
const printed = () => hypervisor.console('a').tail().toString()

it('is paused, shown as such to every agent, and writes on when there is room', async () => {
  const path = join(folder, 'data.qcow2')
  await run('qemu-img', ['create', '-q', '-f', 'qcow2', path, '1G'])
  await chmod(path, 0o600)
  await hypervisor.start(await machine.definition('a', 1, 'own-0'))
  await eventually('the guest', () => printed().includes('root@web-1') || undefined)
  await hypervisor.plugDisk('a', { path, serial: 'data', slot: 1 })
  await eventually('its disk', () => {
    hypervisor.console('a').write(Buffer.from('ls /dev/vdc && echo disk-$((1+1))\n'))
    return printed().includes('disk-2') || undefined
  })
  expect(await isFull()).toBe(false)

  hypervisor.console('a').write(Buffer.from(WRITE))
  await eventually('the full disk', async () => (await isFull()) || undefined)
  expect(await hypervisor.inspect('a')).toMatchObject({ state: 'running', isResponsive: true })
  expect(await hasRoomFor([path])).toBe(false)

  await hypervisor.close()
  hypervisor = await machine.host(0).attach()
  expect(await isFull()).toBe(true)
  // without room it is paused again
  await hypervisor.resume('a')
  await eventually('the full disk again', async () => (await isFull()) || undefined)
  expect(printed()).not.toContain('all-2-written')

  await run('mount', ['-o', `remount,${LARGE}`, folder])
  expect(await hasRoomFor([path])).toBe(true)
  await eventually('the end of the writes', async () => {
    await hypervisor.resume('a')
    return printed().includes('all-2-written') || undefined
  })
  expect(await isFull()).toBe(false)
})
