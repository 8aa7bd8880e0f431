/** The second factor at sign-in: a code, a recovery code, or its set-up when the account asks for one. */
import { useQuery } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useState } from 'react'
import type { SecondFactorSession } from '../../client/schema.ts'
import { call } from '../api/client.ts'
import { Refusal } from '../api/refusal.ts'
import { t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Copy } from '../ui/copy.tsx'
import { TextField } from '../ui/field.tsx'
import { Loading } from '../ui/layout.tsx'
import { ProblemView } from '../ui/problem.tsx'
import { RecoveryCodes } from './recovery-codes.tsx'
import { useSubmission } from './submission.ts'

// Only a set-up draws it.
const QrCode = lazy(async () => ({ default: (await import('../ui/qr.tsx')).QrCode }))

export interface SecondFactorProps {
  readonly challenge: string
  readonly step: 'verify' | 'enroll'
  readonly onDone: (session: SecondFactorSession) => void
  readonly onExpired: () => void
}

export function SecondFactor(props: SecondFactorProps): ReactNode {
  return props.step === 'verify' ? <Verify {...props} /> : <Enroll {...props} />
}

const CODE_LENGTH = 6
const asDigits = (text: string): string => text.replace(/\D/g, '').slice(0, CODE_LENGTH)

function Verify({ challenge, onDone, onExpired }: SecondFactorProps): ReactNode {
  const [isRecovery, setRecovery] = useState(false)
  const [code, setCode] = useState('')
  const { isBusy, refusal, onSubmit } = useSubmission(async () =>
    onDone(
      await call('verify_login_second_factor', {
        body: { challenge, ...(isRecovery ? { recovery_code: code.trim() } : { code }) },
        isSigningIn: true,
      }),
    ),
  )
  return (
    <form className="form" onSubmit={onSubmit} noValidate>
      <TextField
        key={String(isRecovery)}
        label={isRecovery ? t().factor.recovery : t().factor.code}
        note={isRecovery ? undefined : t().factor.note}
        value={code}
        onChange={(text) => setCode(isRecovery ? text : asDigits(text))}
        inputMode={isRecovery ? 'text' : 'numeric'}
        autoComplete="one-time-code"
        autoFocus
      />
      {refusal === undefined ? null : <Expired refusal={refusal} onExpired={onExpired} />}
      <Button kind="primary" type="submit" isBusy={isBusy} isWide>
        {t().factor.verify}
      </Button>
      <Button
        kind="quiet"
        onPress={() => {
          setCode('')
          setRecovery(!isRecovery)
        }}
      >
        {isRecovery ? t().factor.useCode : t().factor.useRecovery}
      </Button>
    </form>
  )
}

const Expired = ({ refusal, onExpired }: { readonly refusal: Refusal; readonly onExpired: () => void }): ReactNode => (
  <>
    <ProblemView refusal={refusal} />
    {refusal.status === 401 ? <Button onPress={onExpired}>{t().factor.startAgain}</Button> : null}
  </>
)

function Enroll({ challenge, onDone, onExpired }: SecondFactorProps): ReactNode {
  const [code, setCode] = useState('')
  const [session, setSession] = useState<SecondFactorSession>()
  const setup = useQuery({
    queryKey: ['second-factor-setup', challenge.slice(-12)],
    queryFn: () => call('start_login_second_factor_setup', { body: { challenge }, isSigningIn: true }),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  })
  const { isBusy, refusal, onSubmit } = useSubmission(async () =>
    setSession(await call('finish_login_second_factor_setup', { body: { challenge, code }, isSigningIn: true })),
  )
  if (session !== undefined)
    return <RecoveryCodes codes={session.recovery_codes ?? []} onKept={() => onDone(session)} />
  if (setup.error instanceof Refusal) return <Expired refusal={setup.error} onExpired={onExpired} />
  if (setup.data === undefined) return <Loading />
  return (
    <form className="form" onSubmit={onSubmit} noValidate>
      <p>{t().factor.setUpNote}</p>
      <AuthenticatorCode uri={setup.data.otpauth_uri} secret={setup.data.secret} />
      <TextField
        label={t().factor.code}
        value={code}
        onChange={(text) => setCode(asDigits(text))}
        inputMode="numeric"
        autoComplete="one-time-code"
        autoFocus
      />
      {refusal === undefined ? null : <Expired refusal={refusal} onExpired={onExpired} />}
      <Button kind="primary" type="submit" isBusy={isBusy} isWide>
        {t().factor.confirm}
      </Button>
    </form>
  )
}

/** To scan, or to type. */
export const AuthenticatorCode = ({ uri, secret }: { readonly uri: string; readonly secret: string }): ReactNode => (
  <div className="stack">
    <Suspense fallback={<Loading />}>
      <QrCode text={uri} label={t().factor.qr} />
    </Suspense>
    <p className="note soft">{t().factor.secret}</p>
    <Copy text={secret} />
  </div>
)
