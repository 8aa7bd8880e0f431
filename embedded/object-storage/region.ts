/** The engine knows one region, and clients sign for any: a request for another is signed again with its own secret,
 *  once it is proven. */
import { createHash } from 'node:crypto'
import { signForRegion, signWithBody } from '../../kit/s3/another-region.ts'
import type { ReadDocument } from '../../kit/s3/document.ts'
import type { Signature } from '../../kit/s3/signature.ts'
import { REGION } from './engine.ts'
import type { Outgoing } from './forward.ts'
import { type RawRequest, Refusal } from './request.ts'

/** As the engine gets it. */
export function outgoingOf(raw: RawRequest, signature: Signature, secret: string): Outgoing {
  if (signature.region === REGION) return raw
  const { raw: anew, chunks } = signForRegion(raw, signature, secret, REGION)
  return { ...anew, chunks }
}

const LOCATION = /<LocationConstraint(?:\s[^>]*)?(?:\/>|>[^<]*<\/LocationConstraint>)/

/** A bucket is made in the region that its maker signs for, which is a name to us; the engine hears of none. Throws the
 *  Refusal for another one. */
export function withoutLocation(
  raw: RawRequest,
  { signature, secret }: { readonly signature: Signature; readonly secret: string },
  { location }: Pick<ReadDocument, 'location'>,
  body: Buffer,
): (Outgoing & { readonly body: Buffer }) | undefined {
  if (location === undefined) return undefined
  if (location !== '' && location !== signature.region)
    throw new Refusal(
      400,
      'IllegalLocationConstraintException',
      `The ${location} location constraint is incompatible for the region specific endpoint this request was sent to.`,
    )
  const rest = Buffer.from(body.toString().replace(LOCATION, ''))
  const digest = createHash('sha256').update(rest).digest('hex')
  const anew = signWithBody(raw, signature, secret, { region: REGION, digest, bytes: rest.length })
  return { ...anew, body: rest }
}
