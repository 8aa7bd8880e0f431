/** Snapshots in qcow2 files. */
import { z } from 'zod'
import { runProgram } from '../../run-program.ts'
import { type LabelledSnapshot, readLabels } from './snapshot-label.ts'
import type { TakeInGuest } from './volume-store.ts'

const TIMEOUT_MILLISECONDS = 300_000

const Info = z.looseObject({ snapshots: z.array(z.looseObject({ name: z.string() })).default([]) })

/** The file may be open in a guest. The entry of an existing snapshot never changes. */
export async function listSnapshots(path: string): Promise<readonly LabelledSnapshot[]> {
  const text = await runProgram('qemu-img', ['info', '--force-share', '--output=json', '-f', 'qcow2', path], {
    timeoutMilliseconds: TIMEOUT_MILLISECONDS,
  })
  return readLabels(Info.parse(JSON.parse(text)).snapshots.map(({ name }) => name))
}

const change = (verb: '-c' | '-d') => async (path: string, label: string) =>
  void (await runProgram('qemu-img', ['snapshot', '-q', verb, label, path], {
    timeoutMilliseconds: TIMEOUT_MILLISECONDS,
  }))

/** Changes a file that nobody has open. */
export const takeSnapshotClosed: TakeInGuest = (path, label) => change('-c')(path, label(false))
export const removeSnapshotClosed = change('-d')
