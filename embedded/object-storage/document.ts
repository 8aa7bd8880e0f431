/** Bodies that are documents: each is read, verified and parsed completely before it is passed on, because it names
 *  keys. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { crc32 } from 'node:zlib'
import { type DocumentName, documentBytesMaximum, type ReadDocument, readDocument } from '../../kit/s3/document.ts'
import { engineKeyRefusal } from '../../kit/s3/names.ts'
import type { S3Operation } from '../../kit/s3/operation.ts'
import { missingLength, S3Refusal, throwIf } from './request.ts'

/** Only a few concurrent documents may be larger. */
export const LARGE_DOCUMENT_BYTES = 64 * 1024

const documentOf = ({ rule }: S3Operation): DocumentName | undefined => (rule.body === 'bytes' ? undefined : rule.body)

export const isDocument = (operation: S3Operation): boolean => documentOf(operation) !== undefined

/** Length of the document; 0 without one. Throws the Refusal when it is too long. */
export function checkDocumentLength(operation: S3Operation, { headers }: Pick<IncomingMessage, 'headers'>): number {
  const name = documentOf(operation)
  if (name === undefined) return 0
  if (headers['transfer-encoding'] !== undefined) throw missingLength()
  const length = Number(headers['content-length'] ?? 0)
  if (length > documentBytesMaximum(name))
    throw new S3Refusal(400, 'MaxMessageLengthExceeded', 'Your request was too big.')
  return length
}

/** Throws the Refusal when the document differs from the signed one, or is invalid. */
export function checkDocument(operation: S3Operation, body: Buffer, isHere: boolean): ReadDocument | undefined {
  const name = documentOf(operation)
  if (name === undefined) return undefined
  checkDigests(operation, body)
  const document = readDocument(name, body)
  if (isHere) for (const key of document.keys) throwIf(engineKeyRefusal(key, false))
  return document
}

const SHA256 = /^[0-9a-f]{64}$/i

/** Verifies the digests that Node supports; the engine verifies the others, with the same bytes. */
function checkDigests({ headers }: S3Operation, body: Buffer): void {
  const signed = headers.get('x-amz-content-sha256') ?? ''
  const digest = (algorithm: string): Buffer => createHash(algorithm).update(body).digest()
  if (SHA256.test(signed) && !isSame(digest('sha256'), Buffer.from(signed, 'hex')))
    throw new S3Refusal(
      400,
      'XAmzContentSHA256Mismatch',
      "The provided 'x-amz-content-sha256' header does not match what was computed.",
    )
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(body))
  for (const [name, computed] of [
    ['content-md5', () => digest('md5')],
    ['x-amz-checksum-sha1', () => digest('sha1')],
    ['x-amz-checksum-sha256', () => digest('sha256')],
    ['x-amz-checksum-crc32', () => sum],
  ] as const) {
    const claimed = headers.get(name)
    if (claimed !== undefined && !isSame(computed(), Buffer.from(claimed, 'base64')))
      throw new S3Refusal(400, 'BadDigest', `The ${name} you specified did not match the calculated checksum.`)
  }
}

const isSame = (one: Buffer, other: Buffer): boolean => one.length === other.length && timingSafeEqual(one, other)
