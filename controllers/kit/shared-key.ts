/** Keys that two nodes share while data is transferred from one to the other. */
import { isDeepStrictEqual } from 'node:util'
import { type Key, type ObjectMeta, Secret } from '../../kit/kube/object.ts'
import type { Parts } from './parts.ts'

const KEY_BYTES = 32

/** The Secret is deleted with its owner, where it has one in its namespace. */
export type SecretPlace = Key & Pick<ObjectMeta, 'ownerReferences'>

/** Gives both Secrets the same key: that of the first, where it has one. */
export async function shareKey(
  parts: Pick<Parts, 'store' | 'random'>,
  [source, target]: readonly [source: SecretPlace, target: SecretPlace],
): Promise<void> {
  const psk = parts.random.bytes(KEY_BYTES).toString('hex')
  const key = (await parts.store.get(Secret, source))?.data ?? { psk: Buffer.from(psk).toString('base64') }
  for (const place of [source, target]) await writeSecret(parts, place, key)
}

/** Writes nothing when the Secret already has the data and the owner. */
export async function writeSecret(
  { store }: Pick<Parts, 'store'>,
  metadata: SecretPlace,
  data: Readonly<Record<string, string>>,
): Promise<void> {
  const { namespace = '', name, ownerReferences: [owner] = [] } = metadata
  const known = await store.get(Secret, { namespace, name })
  const isOwned = owner === undefined || known?.metadata.ownerReferences?.some(({ uid }) => uid === owner.uid)
  if (isOwned !== true || !isDeepStrictEqual(known?.data, data))
    await store.apply(Secret, { metadata, spec: undefined, data })
}
