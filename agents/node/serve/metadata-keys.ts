/** Identifies the guest that requests its metadata: every connection of a guest starts with a secret that only the host
 *  can create. It is derived from the guest's name and a key of the host, so that nothing is stored for each guest. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeDurably } from '../../../kit/sys/durable-file.ts'
import type { Random } from '../../../kit/sys/random.ts'

export interface MetadataKeys {
  /** File with the current port of the service, for the drivers that connect guests to it. */
  readonly portFile: string
  /** The first line of a guest's connections. */
  secretOf(guest: string): string
  /** The guest with this secret; undefined when there is none. */
  guestOf(secret: string): string | undefined
  /** Key for the guest's tokens. */
  tokenKeyOf(guest: string): string
}

const KEY_BYTES = 32

/** The key is created once and stored in the folder. */
export async function openMetadataKeys(folder: string, random: Random): Promise<MetadataKeys> {
  const file = join(folder, 'metadata.key')
  const previous = await readFile(file, 'utf8').catch(() => undefined)
  const key = previous ?? random.bytes(KEY_BYTES).toString('hex')
  if (previous === undefined) await writeDurably(file, key)
  const sign = (text: string) => createHmac('sha256', key).update(text).digest('hex')
  return {
    portFile: join(folder, 'metadata.port'),
    secretOf: (guest) => `${guest} ${sign(`door/${guest}`)}`,
    guestOf(secret) {
      const [, guest = '', signature = ''] = /^(\S+) ([0-9a-f]{64})$/.exec(secret) ?? []
      return guest !== '' && timingSafeEqual(Buffer.from(signature), Buffer.from(sign(`door/${guest}`)))
        ? guest
        : undefined
    },
    tokenKeyOf: (guest) => sign(`tokens/${guest}`),
  }
}
