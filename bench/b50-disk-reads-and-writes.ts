/** Reads and writes of a guest on a disk that the agent attached, against the same QEMU with the disk on its command
 *  line, as people write it by hand. The guest writes one file, reads it, and reads many small ones in no order;
 *  nothing is in its cache. The unit is a mebibyte of the three together; the time of each is reported too. */
import { join } from 'node:path'
import { plugDisk } from '../agents/node/drivers/hypervisor/qemu-disks.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { newDisk, openMachines } from './guests.ts'
import { type Bench, median } from './runner.ts'

const SIZES = { full: { mebibytes: 96, files: 1_500 }, short: { mebibytes: 4, files: 20 } }
const PHASES = ['sequential writes', 'sequential reads', 'random reads'] as const
type Phase = (typeof PHASES)[number]
const DROP = 'sync; echo 3 > /proc/sys/vm/drop_caches'

/** Reads one byte of each file, and with it the block, without starting a program. The step is a prime. */
const readAtRandom = (files: number): string =>
  `n=0; j=0; while [ $n -lt ${files} ]; do j=$(((j+7919)%${files})); read -n 1 x < /bench/many/$j; n=$((n+1)); done`

export const bench: Bench = {
  name: 'B50 disk reads and writes',
  question: 'what a guest writes and reads on its disk, in sequence and at random',
  subjectName: 'svccloud',
  peerName: 'the same QEMU by hand',
  unit: 'MiB',
  goal: 0.97,
  tier: 'qemu',
  async open(round) {
    const { mebibytes, files } = SIZES[round]
    const machines = await openMachines()
    const { root, definition, argumentsOf } = machines
    const taken = { subject: newTimes(), peer: newTimes() }

    async function openSide(name: keyof typeof taken) {
      const path = await newDisk(join(root, `${name}.qcow2`), 2)
      const boot = await newDisk(join(root, `${name}-boot.qcow2`), 1)
      const byHand = ['-drive', `file=${path},format=qcow2,if=none,id=byhand`]
      const device = ['-device', 'virtio-blk-pci,drive=byhand,bus=spare0,serial=bench']
      const machine = await machines.start([
        ...argumentsOf({ ...definition, disks: [{ path: boot, serial: 'boot' }] }),
        ...(name === 'peer' ? [...byHand, ...device] : []),
      ])
      await machine.booted()
      if (name === 'subject') await plugDisk(machine.qmp, { path, serial: 'bench', slot: 1 })
      await machine.type(
        'D=; while [ -z "$D" ]; do D=$(grep -l bench /sys/block/vd*/serial | cut -d/ -f4); sleep 0.1; done; ' +
          'mke2fs /dev/$D > /dev/null 2>&1 && mkdir -p /bench && mount -t ext4 /dev/$D /bench && ' +
          `mkdir /bench/many && cd /bench/many && i=0 && while [ $i -lt ${files} ]; do ` +
          'printf %04096d $i > $i; i=$((i+1)); done && [ $(ls | wc -l) = $i ] && echo ready""-so',
        /^ready-so\r?$/m,
      )
      const timed = async (phase: Phase, line: string): Promise<number> => {
        await machine.type(`${DROP}; echo dropped""-so`, /^dropped-so\r?$/m)
        const startedAt = clock.monotonicMilliseconds()
        await machine.type(`${line} && echo done""-so`, /^done-so\r?$/m)
        const milliseconds = clock.monotonicMilliseconds() - startedAt
        taken[name].get(phase)?.push(milliseconds)
        return milliseconds / 1_000
      }
      return {
        async run() {
          const seconds =
            (await timed(
              'sequential writes',
              `dd if=/dev/zero of=/bench/one bs=1M count=${mebibytes} conv=fsync 2>/dev/null`,
            )) +
            (await timed('sequential reads', 'dd if=/bench/one of=/dev/null bs=1M 2>/dev/null')) +
            (await timed('random reads', readAtRandom(files)))
          return { units: 2 * mebibytes + (files * 4) / 1_024, seconds }
        },
      }
    }

    const [subject, peer] = [await openSide('subject'), await openSide('peer')]
    return {
      subject,
      peer,
      facts: () =>
        Object.fromEntries(
          PHASES.map((phase) => {
            const [ours, theirs] = [taken.subject, taken.peer].map((times) => median(times.get(phase) ?? []))
            return [`${phase}, ms against ms`, `${Math.round(ours ?? 0)} / ${Math.round(theirs ?? 0)}`]
          }),
        ),
      close: machines.close,
    }
  },
}

const newTimes = () => new Map<Phase, number[]>(PHASES.map((phase) => [phase, []]))
