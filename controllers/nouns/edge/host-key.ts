/** The host key of an edge's bastion: created once, sealed in PostgreSQL, and given to every machine that becomes the
 *  bastion, so that clients see no warning when it is replaced. */
import { type EdgeId, hostKeyOwner, keepHostKey } from '../../../db/edge/index.ts'
import { HOST_KEY_SEED_BYTES, hostKeyOf } from '../../../domain/edge/ssh-host-key.ts'
import { Unavailable } from '../../../domain/problem.ts'
import type { Sealing } from '../../../kit/sys/sealing.ts'
import { orUnavailable } from '../../kit/outage.ts'
import type { Parts } from '../../kit/parts.ts'

/** Parts of the edge controller besides those of every controller. */
export interface HostKeyAccess {
  readonly sealing?: Sealing
}

/** In the file format of sshd; undefined in a deployment that cannot store secrets. */
export async function keptHostKey(
  { db, random, sealing }: Pick<Parts, 'db' | 'random'> & HostKeyAccess,
  id: EdgeId,
): Promise<string | undefined> {
  if (sealing?.isAvailable !== true) return undefined
  const { publicKey, privateKey } = hostKeyOf(random.bytes(HOST_KEY_SEED_BYTES))
  const owner = hostKeyOwner(id)
  const keyPair = { hostKey: publicKey, sealedHostKey: sealing.seal(privateKey, owner) }
  const row = await orUnavailable(keepHostKey(db, id, keyPair))
  if (row === undefined) throw new Unavailable(`what edge ${id.edgeId} has claimed`, undefined)
  return sealing.open(row.sealedHostKey, owner)
}
