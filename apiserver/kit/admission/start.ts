/** The webhook as a part of the API server's process. */
import type { Store } from '../../../kit/kube/store.ts'
import { makeOwnCertificate, readCertificate } from './certificate.ts'
import { type AdmissionOptions, openAdmission } from './admit.ts'
import { type CallerCredentials, type Listener, startListener, WEBHOOK_PATH } from './listener.ts'
import { openRegistrar, type Registrar } from './registration.ts'

export interface WebhookOptions extends AdmissionOptions {
  readonly store: Store
  readonly host: string
  readonly port: number
  /** How the Kubernetes API authenticates. */
  readonly callers: CallerCredentials
  /** PEM files; without them, a certificate is created. */
  readonly certificateFiles: { readonly certificate: string; readonly key: string } | undefined
  /** Registers the webhook with the Kubernetes API, at the address that it listens on. Only for one process, because
   *  the certificate is its own. */
  readonly isRegistering: boolean
  /** Name of the `ValidatingWebhookConfiguration`. */
  readonly configurationName: string
}

export interface Admission extends Listener, Pick<Registrar, 'isRegistered'> {}

/** Returns once it listens and is registered. Until the caches of plans, templates and zones are filled, it refuses
 *  objects that name them. */
export async function startAdmission(options: WebhookOptions): Promise<Admission> {
  const { host, port, callers, certificateFiles, platformUsers, log } = options
  const certificate =
    certificateFiles === undefined ? await makeOwnCertificate(host, options) : await readCertificate(certificateFiles)
  if (callers.token === '') throw new Error('the token of the webhook is empty')
  if (callers.token === undefined && callers.clientAuthority === undefined)
    log.warn('the webhook cannot tell who calls it: writes are judged, but neither attributed nor audited', {
      settings: ['SVCCLOUD_WEBHOOK_TOKEN_FILE', 'SVCCLOUD_WEBHOOK_CLIENT_AUTHORITY_FILE'],
    })
  const listener = await startListener({ host, port, certificate, callers, admit: openAdmission(options), log })
  const registration = {
    url: `https://${host}:${listener.port}${WEBHOOK_PATH}`,
    authority: certificate.certificate,
    platformUsers,
    kinds: options.kinds,
  }
  const ending = new AbortController()
  const { isRegistered, ended } = await openRegistrar(
    { ...options, name: options.configurationName, registration: options.isRegistering ? registration : undefined },
    ending.signal,
  )
  return {
    port: listener.port,
    isRegistered,
    drain() {
      ending.abort()
      listener.drain()
    },
    async stop() {
      ending.abort()
      await Promise.all([listener.stop(), ended])
    },
  }
}
