/** The engine knows one region, and clients sign for any region. A proven request for another region is signed again
 *  with the client's secret. */
import { createHash } from 'node:crypto'
import { signForRegion, signWithBody } from '../../kit/s3/another-region.ts'
import type { ReadDocument } from '../../kit/s3/document.ts'
import type { Signature } from '../../kit/s3/signature.ts'
import { SIGNING_REGION } from './engine.ts'
import type { Outgoing } from './forward.ts'
import { type RawRequest, S3Refusal } from './request.ts'

/** The request for the engine. */
export function outgoingOf(raw: RawRequest, signature: Signature, secret: string): Outgoing {
  if (signature.region === SIGNING_REGION) return raw
  const { raw: anew, chunks } = signForRegion(raw, signature, secret, SIGNING_REGION)
  return { ...anew, chunks }
}

const LOCATION = /<LocationConstraint(?:\s[^>]*)?(?:\/>|>[^<]*<\/LocationConstraint>)/

/** Removes the region from a request to create a bucket: it may only be the region of the signature, and the engine
 *  must not see it. Throws the Refusal for another region. */
export function withoutLocation(
  raw: RawRequest,
  { signature, secret }: { readonly signature: Signature; readonly secret: string },
  { location }: Pick<ReadDocument, 'location'>,
  body: Buffer,
): (Outgoing & { readonly body: Buffer }) | undefined {
  if (location === undefined) return undefined
  if (location !== '' && location !== signature.region)
    throw new S3Refusal(
      400,
      'IllegalLocationConstraintException',
      `The ${location} location constraint is incompatible for the region specific endpoint this request was sent to.`,
    )
  const rest = Buffer.from(body.toString().replace(LOCATION, ''))
  const digest = createHash('sha256').update(rest).digest('hex')
  const anew = signWithBody(raw, signature, secret, { region: SIGNING_REGION, digest, bytes: rest.length })
  return { ...anew, body: rest }
}
