/** Keys that two nodes share for as long as data goes from one to the other. */
import { isDeepStrictEqual } from 'node:util'
import { type Key, type ObjectMeta, Secret } from '../kit/kube/object.ts'
import type { Parts } from './parts.ts'

const KEY_BYTES = 32

/** Gives both Secrets the same key: that of the first, where it has one. */
export async function shareKey(
  parts: Pick<Parts, 'store' | 'random'>,
  [source, target]: readonly [source: Key, target: Key],
): Promise<void> {
  const psk = parts.random.bytes(KEY_BYTES).toString('hex')
  const key = (await parts.store.get(Secret, source))?.data ?? { psk: Buffer.from(psk).toString('base64') }
  for (const place of [source, target]) await writeSecret(parts, place, key)
}

/** Writes nothing when the Secret already has the data. */
export async function writeSecret(
  { store }: Pick<Parts, 'store'>,
  metadata: Key & Pick<ObjectMeta, 'ownerReferences'>,
  data: Readonly<Record<string, string>>,
): Promise<void> {
  const { namespace = '', name } = metadata
  if (!isDeepStrictEqual((await store.get(Secret, { namespace, name }))?.data, data))
    await store.apply(Secret, { metadata, spec: undefined, data })
}
