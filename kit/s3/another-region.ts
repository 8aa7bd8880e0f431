/** Requests that were signed for another region than the engine's: verified, and then signed again with the same
 *  secret. Pure. */
import { authorizationOf, scopeText, type Signature, signatureOf, signingKey } from './signature.ts'
import { ChunksAnew } from './signed-chunks.ts'
import type { RawRequest } from './target.ts'

export interface ResignedRequest {
  readonly raw: RawRequest
  /** For a body in signed chunks. */
  readonly chunks: ChunksAnew | undefined
}

const SIGNED_CHUNKS = /^STREAMING-AWS4-HMAC-SHA256-PAYLOAD/

/** The same request, signed for the region. */
export function signForRegion(raw: RawRequest, signature: Signature, secret: string, region: string): ResignedRequest {
  const other = { ...signature, region }
  const key = signingKey(secret, signature.day, region)
  if (signature.kind === 'address') return { raw: { ...raw, target: targetOf(raw, other, key) }, chunks: undefined }
  const anew = signatureOf(raw, other, key)
  const rawHeaders = withHeader(raw.rawHeaders, 'authorization', authorizationOf(other, anew))
  const payload = valueOf(raw.rawHeaders, 'x-amz-content-sha256')
  if (!SIGNED_CHUNKS.test(payload)) return { raw: { ...raw, rawHeaders }, chunks: undefined }
  const from = {
    key: signingKey(secret, signature.day, signature.region),
    scope: scopeText(signature),
    seed: signature.signature,
  }
  const chunks = new ChunksAnew(signature.instant, from, { key, scope: scopeText(other), seed: anew })
  return { raw: { ...raw, rawHeaders }, chunks }
}

/** With another body, of which only the digest is given. */
export function signWithBody(
  raw: RawRequest,
  signature: Signature,
  secret: string,
  { region, digest, bytes }: { readonly region: string; readonly digest: string; readonly bytes: number },
): RawRequest {
  const isOfBody = (name: string): boolean => /^(?:content-md5|x-amz-(?:sdk-)?checksum-.*)$/.test(name.toLowerCase())
  const headers = raw.rawHeaders.flatMap((name, index, all) =>
    index % 2 === 0 && !isOfBody(name) ? [name, all[index + 1] ?? ''] : [],
  )
  const sized = withHeader(headers, 'content-length', String(bytes))
  const other = { ...signature, region, signedHeaders: signature.signedHeaders.filter((name) => !isOfBody(name)) }
  const key = signingKey(secret, signature.day, region)
  if (signature.kind === 'address') {
    const changed = { ...raw, rawHeaders: sized }
    return { ...changed, target: targetOf(changed, other, key) }
  }
  const changed = { ...raw, rawHeaders: withHeader(sized, 'x-amz-content-sha256', digest) }
  const text = authorizationOf(other, signatureOf(changed, other, key))
  return { ...changed, rawHeaders: withHeader(changed.rawHeaders, 'authorization', text) }
}

const withHeader = (rawHeaders: readonly string[], name: string, value: string): readonly string[] =>
  rawHeaders.map((each, index) =>
    (rawHeaders[index - 1] ?? '').toLowerCase() === name && index % 2 === 1 ? value : each,
  )

const valueOf = (rawHeaders: readonly string[], name: string): string =>
  rawHeaders.find((_value, index) => index % 2 === 1 && (rawHeaders[index - 1] ?? '').toLowerCase() === name) ?? ''

function targetOf(raw: RawRequest, signature: Signature, key: Buffer): string {
  const credential = encodeURIComponent(`${signature.accessKeyId}/${scopeText(signature)}`)
  const target = raw.target.replace(/([?&])X-Amz-Credential=[^&]*/, `$1X-Amz-Credential=${credential}`)
  const anew = signatureOf({ ...raw, target }, signature, key)
  return target.replace(/([?&])X-Amz-Signature=[^&]*/, `$1X-Amz-Signature=${anew}`)
}
