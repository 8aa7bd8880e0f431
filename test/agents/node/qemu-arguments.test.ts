import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { GuestDefinition } from '../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { tapOf } from '../../../agents/node/drivers/network/ovn.ts'
import { guestUuid } from '../../../agents/node/drivers/hypervisor/guest-record.ts'
import { qemuArguments } from '../../../agents/node/drivers/hypervisor/qemu-arguments.ts'
import { environment } from '../../../kit/sys/process.ts'

const guest: GuestDefinition = {
  name: '6f1c9f0e-5b0a-4c51-9d53-0c9a3c1f7a11',
  uid: 'uid-1',
  incarnation: 2,
  hostname: 'web-1',
  cores: 2,
  memoryMebibytes: 1024,
  boot: { kernel: '/images/vmlinuz', initialRamdisk: '/images/initrd.gz', commandLine: 'console=ttyS0 quiet' },
  disks: [
    { path: '/volumes/a,b.qcow2', serial: 'boot' },
    { path: '/volumes/data.qcow2', serial: 'data', slot: 1 },
  ],
  interfaces: [{ macAddress: '52:54:00:12:34:56' }, { macAddress: '52:54:00:12:34:57' }],
  forwardedPorts: [22],
  seed: Buffer.alloc(0),
}
const forwards = [{ guestPort: 22, host: '127.0.0.1', hostPort: 2222 }]
const UUID = guestUuid(guest.name)

/** One option a line. */
const linesOf = (commandLine: readonly string[]): string =>
  `${commandLine.join(' ').replaceAll(/ (?=-[a-z])/g, '\n')}\n`

function matchesGolden(name: string, text: string): void {
  const file = join(import.meta.dirname, 'golden', name)
  if (environment()['UPDATE'] === '1') {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  expect(text).toBe(readFileSync(file, 'utf8'))
}

describe('the command line of a guest', () => {
  it('emulated, with two disks and two interfaces', () => {
    matchesGolden(
      'qemu-emulated.txt',
      linesOf(
        qemuArguments(
          guest,
          UUID,
          { accelerator: 'tcg', machine: 'pc-q35-7.2', cpu: 'qemu64' },
          { isOutboundAllowed: true, metadata: { portFile: '/agent/metadata.port', secretOf: () => 'secret' } },
          forwards,
        ),
      ),
    )
  })
  it('shows an instruction that an old emulator hides to a kernel that leaves it alone', () => {
    const machine = { accelerator: 'tcg', machine: 'pc-q35-7.2', cpu: 'qemu64,cx16=off' } as const
    const cpuOf = (commandLine: string) => {
      const boot = { kernel: '/k', initialRamdisk: '/i', commandLine }
      const input = qemuArguments({ ...guest, boot }, UUID, machine, { isOutboundAllowed: false }, [])
      return input[input.indexOf('-cpu') + 1]
    }
    expect(cpuOf('quiet')).toBe('qemu64,cx16=off')
    expect(cpuOf('quiet clearcpuid=cx16')).toBe('qemu64')
  })
  it.each([
    [128, 32],
    [1_024, 128],
    [4_096, 512],
  ])('of %i MiB, emulated, keeps %i MiB of translated code', (memoryMebibytes, kept) => {
    const machine = { accelerator: 'tcg', machine: 'pc-q35-7.2', cpu: 'qemu64' } as const
    const input = qemuArguments({ ...guest, memoryMebibytes }, UUID, machine, { isOutboundAllowed: false }, [])
    expect(input).toContain(`tcg,tb-size=${kept}`)
  })
  it('without a kernel of the host, from its first disk', () => {
    const machine = { accelerator: 'tcg', machine: 'pc-q35-7.2', cpu: 'qemu64' } as const
    const input = qemuArguments({ ...guest, boot: undefined }, UUID, machine, { isOutboundAllowed: false }, [])
    expect(input).not.toContain('-kernel')
    expect(input.filter((argument) => argument.includes('bootindex'))).toEqual([
      '{"driver":"virtio-blk-pci","id":"vd0","drive":"disk0","serial":"boot","bootindex":0}',
    ])
  })
  it('on KVM, small, isolated, without disks', () => {
    matchesGolden(
      'qemu-kvm.txt',
      linesOf(
        qemuArguments(
          { ...guest, memoryMebibytes: 128, interfaces: [{ macAddress: '52:54:00:12:34:56' }], disks: [] },
          UUID,
          { accelerator: 'kvm', machine: 'pc-q35-7.2', cpu: 'host' },
          { isOutboundAllowed: false },
          [],
        ),
      ),
    )
  })
  it('in the network of a zone has a tap, and nothing that QEMU starts', () => {
    const line = qemuArguments(
      guest,
      UUID,
      { accelerator: 'kvm', machine: 'pc-q35-7.2', cpu: 'host' },
      { kind: 'ovn' },
      [],
    )
    expect(line).toContain(`tap,id=net0,ifname=${tapOf(guest.name, 0)},script=no,downscript=no`)
    expect(line).toContain('on,obsolete=deny,elevateprivileges=deny,spawn=deny')
    expect(line.filter((word) => word.includes('user,id='))).toEqual([])
    expect(tapOf(guest.name, 0)).toMatch(/^svc[0-9a-f]{11}$/)
    expect(new Set([tapOf(guest.name, 0), tapOf(guest.name, 1), tapOf('another', 0)]).size).toBe(3)
  })
  it('is the same for one that waits for its memory, but for the waiting', () => {
    const machine = { accelerator: 'tcg', machine: 'pc-q35-7.2', cpu: 'qemu64' } as const
    const network = { isOutboundAllowed: true }
    const started = qemuArguments(guest, UUID, machine, network, forwards)
    expect(qemuArguments(guest, UUID, machine, network, forwards, 'free')).toEqual([...started, '-incoming', 'defer'])
    expect(qemuArguments(guest, UUID, machine, network, forwards, 'held')).toEqual([
      ...started,
      '-incoming',
      'defer',
      '-S',
    ])
  })
})

it('a guest is known by its name, or by a UUID made of it', () => {
  expect(UUID).toBe(guest.name)
  expect(guestUuid('my-server')).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(guestUuid('my-server')).not.toBe(guestUuid('my-server-2'))
})
