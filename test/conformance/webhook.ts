/** A validating webhook for scenarios: it judges by `spec.note` and remembers what it was asked. */

import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { newAuthority } from '../cluster/certificates.ts'
import { at } from './field.ts'

export interface Webhook {
  readonly url: string
  /** PEM in base64, as a webhook configuration wants it. */
  readonly caBundle: string
  /** The AdmissionReviews that came, oldest first. */
  readonly reviews: readonly unknown[]
  close(): Promise<void>
}

/** Objects with the note `refused` are refused, those with `odd` are let through with a warning, `broken` gets no
 *  useful answer. */
function judge(review: unknown): object | undefined {
  const note = at(review, 'request.object.spec.note') ?? at(review, 'request.oldObject.spec.note')
  if (note === 'broken') return undefined
  const verdict =
    note === 'refused'
      ? { allowed: false, status: { code: 403, message: 'such a note is refused' } }
      : note === 'invalid'
        ? { allowed: false, status: { code: 422, reason: 'Invalid', message: 'such a note is invalid' } }
        : note === 'odd'
          ? { allowed: true, warnings: ['such a note is odd'] }
          : { allowed: true }
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid: at(review, 'request.uid'), ...verdict },
  }
}

export async function startWebhook(): Promise<Webhook> {
  const authority = await newAuthority('webhook-ca')
  const { certificate, key } = await authority.issue({
    commonName: 'webhook',
    addresses: [{ type: 'ip', value: '127.0.0.1' }],
  })
  const reviews: unknown[] = []
  const server: Server = createServer({ cert: certificate, key }, (request, response) => {
    let text = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => (text += chunk))
    request.on('end', () => {
      const review: unknown = JSON.parse(text)
      reviews.push(review)
      const answer = judge(review)
      response.writeHead(answer ? 200 : 500, { 'content-type': 'application/json' }).end(JSON.stringify(answer ?? {}))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // it listens on TCP
  return {
    url: `https://127.0.0.1:${port}/judge`,
    caBundle: Buffer.from(authority.certificate).toString('base64'),
    reviews,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
