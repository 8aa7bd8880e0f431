/** A full backup of a disk that no process has open, against `qemu-img convert` of it. The agent reads the data of the
 *  disk, compresses, encrypts and names each chunk by its content; a conversion copies. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { runProgram } from '../agents/node/run-program.ts'
import { openBackedUpDisk, timed } from './backups.ts'
import type { Bench } from './runner.ts'

export const bench: Bench = {
  name: 'B52 full backup',
  question: 'full backups of a disk of 10 GiB of which some is written',
  subjectName: 'svccloud',
  peerName: 'qemu-img convert',
  unit: 'MiB',
  goal: 1,
  heldBy:
    'what is random to the last byte is read from qemu-nbd, named by its HMAC, encrypted and synced chunk by chunk: ' +
    'about 5 ms of processor time a mebibyte, where its peer copies in 1. Five programs of QEMU that look after the ' +
    'record of changes take as long as the copy of these 128 MiB.',
  tier: 'qemu',
  async open(round) {
    const disk = await openBackedUpDisk(round)
    const copy = join(disk.folder, 'copy.qcow2')
    return {
      subject: {
        async run() {
          await disk.rewrite()
          return { units: disk.mebibytes, seconds: await timed(() => disk.backUp()) }
        },
      },
      peer: {
        async run() {
          await rm(copy, { force: true })
          const input = ['convert', '-f', 'qcow2', '-O', 'qcow2', disk.path, copy]
          // a backup is durable too
          const work = () => runProgram('qemu-img', input).then(() => runProgram('sync', [copy]))
          return { units: disk.mebibytes, seconds: await timed(work) }
        },
      },
      close: disk.close,
    }
  },
}
