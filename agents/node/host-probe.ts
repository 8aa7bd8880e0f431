/** Checks whether another host shows a sign of life. Either its agent answers with its certificate, or something else
 *  answers, which proves that the host is up, or nothing does. The probe sends no data and reveals no secret. */
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import type { Clock } from '../../kit/sys/clock.ts'
import type { ObservationSpec, ObservationStatus } from '../../resources/instance/index.ts'

export type ProbeResult = Pick<ObservationStatus, 'answer' | 'detail'>

/** Checks an endpoint for a sign of life; never throws. */
export type ProbeHost = (endpoint: ObservationSpec['endpoint']) => Promise<ProbeResult>

const TIMEOUT_MILLISECONDS = 5_000
/** Errors that only a running host causes when it does not speak TLS at the port. */
const ERRORS_OF_A_RUNNING_HOST = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'EPROTO']
const DETAIL_LENGTH_MAXIMUM = 1_024

/** Never throws: an unreachable host shows no sign. */
export const hostProbe =
  (clock: Clock): ProbeHost =>
  ({ url, certificateFingerprint }) =>
    new Promise((resolve) => {
      const target = URL.parse(url)
      if (target === null) return resolve({ answer: 'nothing', detail: 'It has no address.' })
      const host = target.hostname.replace(/^\[|\]$/g, '')
      const socket = connect({
        host,
        port: Number(target.port || '443'),
        rejectUnauthorized: false,
        ...(isIP(host) === 0 ? { servername: host } : {}),
      })
      let isConnected = false
      const end = (answer: ProbeResult['answer'], detail: string): void => {
        cancel()
        socket.destroy()
        resolve({ answer, detail: detail.slice(0, DETAIL_LENGTH_MAXIMUM) })
      }
      const cancel = clock.after(TIMEOUT_MILLISECONDS, () =>
        isConnected
          ? end('host', 'A connection is taken, and nothing answers on it.')
          : end('nothing', 'Nothing answers.'),
      )
      socket.once('connect', () => {
        isConnected = true
      })
      socket.once('secureConnect', () => {
        const shown = socket.getPeerX509Certificate()?.fingerprint256.replaceAll(':', '').toLowerCase()
        if (shown === certificateFingerprint.toLowerCase()) end('agent', 'It answers.')
        else end('host', 'Something else answers there.')
      })
      socket.on('error', (error: NodeJS.ErrnoException) =>
        end(isConnected || ERRORS_OF_A_RUNNING_HOST.includes(error.code ?? '') ? 'host' : 'nothing', error.message),
      )
    })
