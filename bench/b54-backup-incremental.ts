/** An incremental backup of a disk of which a tenth has changed, against restic with the written data as a raw file.
 *  The disk tracks its changes; restic reads the file again. */
import { openBackedUpDisk, openRestic, timed } from './backups.ts'
import type { Bench } from './runner.ts'

export const bench: Bench = {
  name: 'B54 incremental backup',
  question: 'backups after a tenth of what is written has changed',
  subjectName: 'svccloud',
  peerName: 'restic',
  unit: 'MiB',
  goal: 2.5,
  tier: 'qemu',
  program: 'restic',
  async open(round) {
    const disk = await openBackedUpDisk(round)
    const restic = await openRestic(disk.folder)
    await restic.begin()
    await restic.backUp(disk.raw)
    let parent = await disk.backUp()
    const units = disk.changedMebibytes
    return {
      subject: {
        async run() {
          await disk.change()
          return { units, seconds: await timed(async () => (parent = await disk.backUp(parent))) }
        },
      },
      peer: {
        async run() {
          await disk.change()
          return { units, seconds: await timed(() => restic.backUp(disk.raw)) }
        },
      },
      facts: () => ({ 'changed, MiB': units, 'written, MiB': disk.mebibytes }),
      close: disk.close,
    }
  },
}
