/** Who signs tokens of people, for tests. */
import { createPrivateKey, createPublicKey, sign } from 'node:crypto'
import { makeCertificate } from '../../../kit/sys/certificate.ts'
import { systemRandom } from '../../../kit/sys/random.ts'

export const ISSUER_URL = 'https://issuer.example.test'

/** Signs tokens, and has the public key by which they are judged. */
export async function openIssuer() {
  const { key: pem } = await makeCertificate({ commonName: 'issuer', days: 1, now: new Date(), random: systemRandom })
  const key = createPrivateKey(pem)
  const { x = '', y = '' } = createPublicKey(pem).export({ format: 'jwk' })
  const jwk = { kty: 'EC', crv: 'P-256', x, y, kid: 'k1', alg: 'ES256', use: 'sig' }
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const token = (claims: object, signer = key): string => {
    const seconds = Math.floor(Date.now() / 1_000)
    const body = { iss: ISSUER_URL, aud: 'cluster-1', sub: 'user-1', iat: seconds, exp: seconds + 600, ...claims }
    const signed = `${part({ alg: 'ES256', kid: 'k1', typ: 'JWT' })}.${part(body)}`
    const signature = sign('sha256', Buffer.from(signed), { key: signer, dsaEncoding: 'ieee-p1363' })
    return `${signed}.${signature.toString('base64url')}`
  }
  return { jwk, token }
}
