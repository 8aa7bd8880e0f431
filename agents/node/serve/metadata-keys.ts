/** How the host knows which guest asks for its metadata: every guest's connections begin with a secret that only the
 *  host can make. It is derived from the guest's name and a key of the host, so that nothing is kept per guest. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeDurably } from '../../../kit/sys/durable-file.ts'
import type { Random } from '../../../kit/sys/random.ts'

export interface MetadataKeys {
  /** Stores where the service listens now, for the drivers that connect guests to it. */
  readonly portFile: string
  /** What the connections of a guest begin with; one line. */
  secretOf(guest: string): string
  /** The guest that has the secret; undefined when none has. */
  guestOf(secret: string): string | undefined
  /** Makes the guest's tokens. */
  tokenKeyOf(guest: string): string
}

const KEY_BYTES = 32

/** The key is made once and kept in the folder. */
export async function openMetadataKeys(folder: string, random: Random): Promise<MetadataKeys> {
  const file = join(folder, 'metadata.key')
  const kept = await readFile(file, 'utf8').catch(() => undefined)
  const key = kept ?? random.bytes(KEY_BYTES).toString('hex')
  if (kept === undefined) await writeDurably(file, key)
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
