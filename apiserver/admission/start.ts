/** The webhook as a part of the API server's process. */
import type { Store } from '../../kit/kube/store.ts'
import { makeOwnCertificate, readCertificate } from './certificate.ts'
import { type AdmissionOptions, openAdmission } from './admit.ts'
import { type Listener, startListener, WEBHOOK_PATH } from './listener.ts'
import { registerWebhook } from './registration.ts'

export interface WebhookOptions extends AdmissionOptions {
  readonly store: Store
  readonly host: string
  readonly port: number
  /** PEM files; a certificate is made when there are none. */
  readonly certificateFiles: { readonly certificate: string; readonly key: string } | undefined
  /** Registers the webhook with the Kubernetes API, at the address that it listens on. Only for one process: the
   *  certificate is its own. */
  readonly isRegistering: boolean
}

/** Answers once it listens. Until the caches of plans, templates and zones are filled it refuses what names them. */
export async function startAdmission(options: WebhookOptions): Promise<Listener> {
  const { store, host, port, certificateFiles, platformUsers, log } = options
  const certificate =
    certificateFiles === undefined ? await makeOwnCertificate(host, options) : await readCertificate(certificateFiles)
  const listener = await startListener({ host, port, certificate, admit: openAdmission(options), log })
  if (options.isRegistering)
    await registerWebhook(store, {
      url: `https://${host}:${listener.port}${WEBHOOK_PATH}`,
      authority: certificate.certificate,
      platformUsers,
      kinds: options.kinds,
    })
  return listener
}
