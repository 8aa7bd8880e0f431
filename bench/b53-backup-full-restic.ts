/** A full backup of a disk that no process has open, against restic with the written data as a raw file: both cut the
 *  content into chunks, compress, encrypt and write them to a folder. */
import { openBackedUpDisk, openRestic, timed } from './backups.ts'
import type { Bench } from './runner.ts'

export const bench: Bench = {
  name: 'B53 full backup, restic',
  question: 'full backups of a disk of 10 GiB of which some is written',
  subjectName: 'svccloud',
  peerName: 'restic',
  unit: 'MiB',
  goal: 1,
  tier: 'qemu',
  program: 'restic',
  async open(round) {
    const disk = await openBackedUpDisk(round)
    const restic = await openRestic(disk.folder)
    return {
      subject: {
        async run() {
          await disk.rewrite()
          return { units: disk.mebibytes, seconds: await timed(() => disk.backUp()) }
        },
      },
      peer: {
        async run() {
          await restic.begin()
          return { units: disk.mebibytes, seconds: await timed(() => restic.backUp(disk.raw)) }
        },
      },
      close: disk.close,
    }
  },
}
