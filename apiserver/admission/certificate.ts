/** The certificate of the webhook: from files where the cluster hands them out, otherwise made here at every start. One that is made
 *  here is its own authority, and the registration says so to the Kubernetes API. */
import 'reflect-metadata'
import { createPrivateKey, webcrypto } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import * as x509 from '@peculiar/x509'
import type { Clock } from '../../kit/sys/clock.ts'
import type { Random } from '../../kit/sys/random.ts'

/** PEM. */
export interface WebhookCertificate {
  readonly certificate: string
  readonly key: string
}

const DAY_MILLISECONDS = 86_400_000
const LIFETIME_DAYS = 825
const SERIAL_BYTES = 12
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

export async function readCertificate(files: { readonly certificate: string; readonly key: string }): Promise<WebhookCertificate> {
  const [certificate, key] = await Promise.all([readFile(files.certificate, 'utf8'), readFile(files.key, 'utf8')])
  return { certificate, key }
}

export async function makeCertificate(host: string, { clock, random }: { readonly clock: Clock; readonly random: Random }): Promise<WebhookCertificate> {
  x509.cryptoProvider.set(webcrypto)
  const now = clock.now().getTime()
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: `01${random.bytes(SERIAL_BYTES).toString('hex')}`, name: 'CN=svccloud-webhook',
    notBefore: new Date(now - DAY_MILLISECONDS), notAfter: new Date(now + LIFETIME_DAYS * DAY_MILLISECONDS), signingAlgorithm: ALGORITHM, keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyCertSign, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([{ type: isIP(host) === 0 ? 'dns' : 'ip', value: host }]),
    ],
  })
  const key = createPrivateKey({ key: Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey)), format: 'der', type: 'pkcs8' })
  return { certificate: certificate.toString('pem'), key: key.export({ type: 'pkcs8', format: 'pem' }).toString() }
}
