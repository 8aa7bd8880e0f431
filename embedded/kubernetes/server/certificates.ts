/** The server's own certificate authority and its certificate, created once and stored in the data folder. */
import { isGood, readPair, writePair } from '../../../kit/sys/certificate-pair.ts'
import { type Certificate, makeCertificate } from '../../../kit/sys/certificate.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import type { Random } from '../../../kit/sys/random.ts'

const AUTHORITY_DAYS = 3_650
const SERVER_DAYS = 825
const RENEW_BEFORE_DAYS = 30

export interface ServerCertificates extends Certificate {
  /** PEM of the authority that clients must trust. */
  readonly authority: string
}

/** Opens the certificates of the folder; creates certificates that are missing, expire soon or lack one of the hosts.
 */
export async function openCertificates(options: {
  readonly folder: string
  readonly hosts: readonly string[]
  readonly clock: Clock
  readonly random: Random
}): Promise<ServerCertificates> {
  const { folder, hosts, clock, random } = options
  const now = clock.now()
  const request = {
    commonName: `svccloud-kubernetes-ca-${random.bytes(4).toString('hex')}`,
    days: AUTHORITY_DAYS,
    isAuthority: true,
    now,
    random,
  }
  const authority = (await readPair(folder, 'ca')) ?? (await writePair(folder, 'ca', await makeCertificate(request)))
  const known = await readPair(folder, 'server')
  const server =
    known && isGood(known, { authority, hosts, now, days: RENEW_BEFORE_DAYS })
      ? known
      : await writePair(
          folder,
          'server',
          await makeCertificate({
            commonName: 'svccloud-kubernetes',
            days: SERVER_DAYS,
            hosts,
            authority,
            now,
            random,
          }),
        )
  return { authority: authority.certificate, certificate: server.certificate, key: server.key }
}
