/** From POST /v1/storages/{id}/attach until the guest sees the disk, on the running product with real QEMU, against the
 *  two QMP commands by hand on a guest of the same kind. Each run is one disk, so the unit is a disk. */
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { askForDisk, closeReleased, plugDisk } from '../agents/node/drivers/hypervisor/qemu-disks.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { Customer, type Operation } from '../test/e2e/customer.ts'
import { clearAway, Product } from '../test/e2e/product.ts'
import { eventually } from '../test/eventually.ts'
import { newDisk, openMachines } from './guests.ts'
import { type Bench, median } from './runner.ts'
import { UNREAD } from '../test/e2e/warnings.ts'

const SERIAL = 'bench'
const SLOT = 1
/** Prints a line whenever the disk of the serial number appears or disappears. */
const watchFor = (serial: string): string =>
  `(s=gone; while :; do n=gone; grep -qs ${serial} /sys/block/vd*/serial && n=there; ` +
  `[ $n = $s ] || echo "disk-$n"; s=$n; sleep 0.01; done) & echo watch""-ing\n`

export const bench: Bench = {
  name: 'B55 attach',
  question: 'one disk from the request until the guest sees it',
  subjectName: 'svccloud',
  peerName: 'bare QMP',
  unit: 'disks',
  goal: 0.67,
  heldBy:
    'the durable writes of Kubernetes and PostgreSQL between the request and the host lie one after the other; QMP ' +
    'alone takes a few milliseconds.',
  tier: 'e2e',
  async open() {
    const folder = await mkdtemp(join(tmpdir(), 'svccloud-bench-'))
    const machines = await openMachines()
    const machine = await machines.start()
    await machine.booted()
    await machine.type(watchFor(SERIAL), /^watch-ing\r?$/m)
    const disk = { path: await newDisk(join(machines.root, 'data.qcow2'), 1), serial: SERIAL, slot: SLOT }

    const product = await Product.start({
      data: join(folder, 'data'),
      flags: ['--hypervisor', 'qemu', '--nodes', 'eu-1a=1'],
      warnings: UNREAD,
    })
    const customer = await Customer.signUp(() => product, 'bench@example.com')
    await customer.addSshKey()
    const { server, operation } = await customer.createServer({
      zone: 'eu-1a',
      hostname: 'bench',
      plan: 'tiny',
      template: 'tiny-linux',
    })
    const { body } = await customer.request<{ storage: { id: string; serial: string }; operation: Operation }>(
      'POST',
      '/v1/storages',
      { zone: 'eu-1a', size_gibibytes: 1 },
    )
    for (const { id } of [operation, body.operation]) await customer.finished(id)
    const { id, serial } = body.storage
    const console = customer.console(server.id)
    await console.see(/root@bench:~# /, 0)
    await console.type(watchFor(serial))
    await console.see(/\nwatch-ing/, 0)
    const times = { subject: [] as number[], peer: [] as number[] }

    async function attach(): Promise<number> {
      const from = console.shown.length
      const startedAt = clock.monotonicMilliseconds()
      const change = await customer.change('POST', `/v1/storages/${id}/attach`, { server_id: server.id })
      await console.see(/disk-there/, from)
      const taken = clock.monotonicMilliseconds() - startedAt
      await customer.finished(change.id)
      await customer.finished((await customer.change('POST', `/v1/storages/${id}/detach`)).id)
      return taken
    }

    async function plug(): Promise<number> {
      const startedAt = clock.monotonicMilliseconds()
      const seen = machine.type('', /disk-there/)
      await plugDisk(machine.qmp, disk)
      await seen
      const taken = clock.monotonicMilliseconds() - startedAt
      await askForDisk(machine.qmp, SLOT)
      await eventually('the guest to release it', () => closeReleased(machine.qmp, SLOT))
      return taken
    }

    const measured = async (side: keyof typeof times, work: () => Promise<number>) => {
      const milliseconds = await work()
      times[side].push(milliseconds)
      return { units: 1, seconds: milliseconds / 1_000 }
    }
    return {
      subject: { run: () => measured('subject', attach) },
      peer: { run: () => measured('peer', plug) },
      facts: () => ({
        'milliseconds, median': Math.round(median(times.subject)),
        'by QMP': Math.round(median(times.peer)),
      }),
      async close() {
        console.close()
        await clearAway(product, folder)
        await machines.close()
      },
    }
  },
}
