/** Keyset cursors: opaque to clients, signed for one list of one account. base64url of `v1.<sort key>.<id>` followed by
 *  16 bytes of HMAC-SHA256. */
import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto'
import { badField } from '../../domain/problem.ts'

export interface Position {
  /** Never contains a dot. */
  readonly sortKey: string
  readonly id: string
}

export interface Cursors {
  /** `list` is the operationId; `accountId` whose list it is. */
  encode(list: string, accountId: string, position: Position): string
  /** Throws a Problem (400) for a cursor that was not issued for this list of this account. */
  decode(list: string, accountId: string, cursor: string): Position
}

const SIGNATURE_BYTES = 16

/** A cursor is valid for the list and the account that it was made for, on every replica with the same key. */
export function createCursors(key: Uint8Array): Cursors {
  const secret = createSecretKey(key)
  const sign = (list: string, accountId: string, payload: Uint8Array) =>
    createHmac('sha256', secret).update(`${list}\n${accountId}\n`).update(payload).digest().subarray(0, SIGNATURE_BYTES)
  return {
    encode(list, accountId, { sortKey, id }) {
      if (sortKey.includes('.')) throw new RangeError('a sort key never holds a dot')
      const payload = Buffer.from(`v1.${sortKey}.${id}`)
      return Buffer.concat([payload, sign(list, accountId, payload)]).toString('base64url')
    },
    decode(list, accountId, cursor) {
      const bytes = Buffer.from(cursor, 'base64url')
      const payload = bytes.subarray(0, Math.max(0, bytes.length - SIGNATURE_BYTES))
      const signature = bytes.subarray(payload.length)
      const isOurs =
        bytes.toString('base64url') === cursor &&
        signature.length === SIGNATURE_BYTES &&
        timingSafeEqual(signature, sign(list, accountId, payload))
      const match = isOurs ? /^v1\.([^.]*)\.(.+)$/s.exec(payload.toString()) : null
      if (match?.[1] === undefined || match[2] === undefined) throw badField('cursor', 'is not a cursor of this list')
      return { sortKey: match[1], id: match[2] }
    },
  }
}
