/** Copies of disks. Each copy is complete and depends on no other file. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { defined } from '../../../../domain/defined.ts'
import { runProgram } from '../../run-program.ts'
import { KEY_FILE, keyFileText } from '../hypervisor/qemu-migration.ts'
import { EXPORT } from './disk-server.ts'
import { formatOf } from './rbd-path.ts'
import type { ServedDisk } from './volume-store.ts'

/** Prefix of folders that a killed copy leaves behind. */
export const KEYS_PREFIX = 'keys-'
export const COPY_TIMEOUT_MILLISECONDS = 24 * 3_600_000
export const CREATE_TIMEOUT_MILLISECONDS = 300_000

/** Creates the disk `to` from a disk that another host serves. The folder holds the key meanwhile. */
export async function copyServedDisk(
  { host, port, key }: ServedDisk,
  { to, folder, signal }: { readonly to: string; readonly folder: string; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  const keys = await mkdtemp(join(folder, KEYS_PREFIX))
  try {
    await writeFile(join(keys, KEY_FILE), keyFileText(key), { mode: 0o600 })
    await runProgram(
      'qemu-img',
      [
        'convert',
        '-q',
        '--object',
        `tls-creds-psk,id=key,dir=${keys.replaceAll(',', ',,')},endpoint=client`,
        '--image-opts',
        `driver=nbd,server.type=inet,server.host=${host},server.port=${port},export=${EXPORT},tls-creds=key`,
        '-O',
        formatOf(to),
        to,
      ],
      { timeoutMilliseconds: COPY_TIMEOUT_MILLISECONDS, ...defined({ signal }) },
    )
  } finally {
    await rm(keys, { recursive: true, force: true })
  }
}

/** Creates a qcow2 file that reads as zeros. */
export const makeEmptyDisk = async (path: string, sizeGibibytes: number): Promise<void> =>
  void (await runProgram('qemu-img', ['create', '-q', '-f', 'qcow2', path, `${sizeGibibytes}G`], {
    timeoutMilliseconds: CREATE_TIMEOUT_MILLISECONDS,
  }))

/** Creates the disk `to` from a disk of this host, including its backing files. */
export const flattenDisk = async (
  from: string,
  { to, signal }: { readonly to: string; readonly signal?: AbortSignal | undefined },
): Promise<void> =>
  void (await runProgram('qemu-img', ['convert', '-q', '-f', formatOf(from), '-O', formatOf(to), from, to], {
    timeoutMilliseconds: COPY_TIMEOUT_MILLISECONDS,
    ...defined({ signal }),
  }))
