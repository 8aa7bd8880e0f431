/** The certificate of the webhook: from files where the cluster issues one, otherwise created here at every start. One
 *  that is created here is its own authority, and the registration gives it to the Kubernetes API. */
import { readFile } from 'node:fs/promises'
import { type Certificate, makeCertificate } from '../../../kit/sys/certificate.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Random } from '../../../kit/sys/random.ts'

const LIFETIME_DAYS = 825

/** PEM files. Rejects when one cannot be read. */
export async function readCertificate(files: {
  readonly certificate: string
  readonly key: string
}): Promise<Certificate> {
  const [certificate, key] = await Promise.all([readFile(files.certificate, 'utf8'), readFile(files.key, 'utf8')])
  return { certificate, key }
}

/** Its own authority: the API server of Kubernetes trusts this one only. */
export const makeOwnCertificate = (
  host: string,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): Promise<Certificate> =>
  makeCertificate({
    commonName: 'svccloud-webhook',
    days: LIFETIME_DAYS,
    hosts: [host],
    isAuthority: true,
    now: clock.now(),
    random,
  })
