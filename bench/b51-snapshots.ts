/** Snapshots of a disk of 10 GiB that is completely written, against those of one of 1 GiB: their cost must not grow
 *  with the disk. The guest has both of them open, and QMP creates the snapshots, as the agent does. The files are
 *  sparse: every cluster is allocated, but none has data. */
import { join } from 'node:path'
import { changeSnapshots, plugDisk } from '../agents/node/drivers/hypervisor/qemu-disks.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { newDisk, openMachines } from './guests.ts'
import { type Bench, median } from './runner.ts'

const SIZES = { full: 10, short: 2 }
const TAKEN = 'milliseconds to take one'

export const bench: Bench = {
  name: 'B51 snapshots',
  question: 'snapshots of a disk of 10 GiB under a guest, with all of it written',
  subjectName: '10 GiB',
  peerName: 'the same of a disk of 1 GiB',
  unit: 'snapshots',
  goal: 0.5,
  limits: { [TAKEN]: 1_000 },
  heldBy:
    'QEMU counts once more every cluster that the snapshot shares with the disk: sixteen thousand for each GiB that ' +
    'is written.',
  tier: 'qemu',
  async open(round) {
    const machines = await openMachines()
    const machine = await machines.start()
    await machine.booted()
    const milliseconds: number[] = []
    let count = 0
    async function openSide(slot: number, gibibytes: number, kept: number[]) {
      const path = await newDisk(join(machines.root, `${slot}.qcow2`), gibibytes, '-o', 'preallocation=metadata')
      await plugDisk(machine.qmp, { path, serial: `bench-${slot}`, slot })
      return {
        async run() {
          const label = `s${(count += 1)}`
          const startedAt = clock.monotonicMilliseconds()
          await changeSnapshots(machine.qmp, slot, { verb: 'take', label })
          const taken = clock.monotonicMilliseconds() - startedAt
          kept.push(taken)
          await changeSnapshots(machine.qmp, slot, { verb: 'remove', label })
          return { units: 1, seconds: taken / 1_000 }
        },
      }
    }
    return {
      subject: await openSide(1, SIZES[round], milliseconds),
      peer: await openSide(2, 1, []),
      facts: () => ({ [TAKEN]: Math.round(median(milliseconds)) }),
      close: machines.close,
    }
  },
}
