/** The agent's own certificate. Nobody signs it: the agent publishes its fingerprint in its NodeReport, and callers
 *  compare that. */
import { createHash, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DAY_MILLISECONDS, makeCertificate } from '../../../kit/sys/certificate.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { writeDurably } from '../../../kit/sys/durable-file.ts'
import type { Random } from '../../../kit/sys/random.ts'

export interface AgentCertificate {
  /** PEM. */
  readonly certificate: string
  readonly key: string
  /** SHA-256 of the certificate in lower-case hex. */
  readonly fingerprint: string
}

const FILE = 'agent.pem'
const LIFETIME_DAYS = 3_650
const RENEW_BEFORE_DAYS = 365

/** The certificate in the folder. A new one is created unless it is valid for another year. Key and certificate share a
 *  file, so that they match. */
export async function openCertificate(folder: string, clock: Clock, random: Random): Promise<AgentCertificate> {
  const path = join(folder, FILE)
  const previous = await readFile(path, 'utf8').catch(() => undefined)
  if (previous !== undefined) {
    const certificate = new X509Certificate(previous)
    if (Date.parse(certificate.validTo) - clock.now().getTime() > RENEW_BEFORE_DAYS * DAY_MILLISECONDS)
      return describe(previous)
  }
  const { certificate, key } = await makeCertificate({
    commonName: 'svccloud-agent',
    days: LIFETIME_DAYS,
    now: clock.now(),
    random,
  })
  const pem = `${key}${certificate}`
  await writeDurably(path, pem)
  return describe(pem)
}

function describe(pem: string): AgentCertificate {
  const { raw } = new X509Certificate(pem)
  return { certificate: pem, key: pem, fingerprint: createHash('sha256').update(raw).digest('hex') }
}
