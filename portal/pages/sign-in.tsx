/** Signing in: password or provider, then the second factor, or its set-up. */
import { lazy, type ReactNode, Suspense, useState } from 'react'
import { Link as AriaLink } from 'react-aria-components'
import type { SecondFactorStep } from '../../client/schema.ts'
import { defined } from '../../domain/defined.ts'
import { useRead } from '../api/cache.ts'
import { call } from '../api/client.ts'
import { t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Checkbox, PasswordField, TextField } from '../ui/field.tsx'
import { Loading } from '../ui/layout.tsx'
import { ProblemView } from '../ui/problem.tsx'
import { useSubmission } from './submission.ts'

// the sheet over every page has a sign-in, which most people finish with a password
export const loadSecondFactor = async () => ({ default: (await import('./second-factor.tsx')).SecondFactor })
export const LazySecondFactor = lazy(loadSecondFactor)

export interface SignInProps {
  /** Where an identity provider's sign-in continues, if there was one. */
  readonly onDone: (returnTo: string | undefined) => void
  readonly email?: string
  /** Over a page: providers would leave it. */
  readonly isSheet?: boolean
  readonly returnTo?: string
}

export function SignIn({ onDone, email = '', isSheet = false, returnTo }: SignInProps): ReactNode {
  const [step, setStep] = useState<SecondFactorStep>()
  if (step !== undefined)
    return (
      <Suspense fallback={<Loading />}>
        <LazySecondFactor
          challenge={step.challenge}
          step={step.mfa_step}
          onDone={(session) => onDone(session.return_to)}
          onExpired={() => setStep(undefined)}
        />
      </Suspense>
    )
  return (
    <>
      {isSheet ? null : <Providers returnTo={returnTo} />}
      <PasswordForm email={email} onStep={setStep} onDone={() => onDone(undefined)} />
    </>
  )
}

interface PasswordFormProps {
  readonly email: string
  readonly onStep: (step: SecondFactorStep) => void
  readonly onDone: () => void
}

function PasswordForm({ email: given, onStep, onDone }: PasswordFormProps): ReactNode {
  const [email, setEmail] = useState(given)
  const [password, setPassword] = useState('')
  const [isEndingOthers, setEndingOthers] = useState(false)
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    const answer = await call('log_in', {
      body: { email, password, end_other_sessions: isEndingOthers },
      isSigningIn: true,
    })
    if ('mfa_required' in answer) onStep(answer)
    else onDone()
  })
  return (
    <form className="form" onSubmit={onSubmit} noValidate>
      <TextField
        label={t().sign.email}
        type="email"
        name="email"
        autoComplete="username"
        value={email}
        onChange={setEmail}
        autoFocus={given === ''}
      />
      <PasswordField label={t().sign.password} value={password} onChange={setPassword} autoFocus={given !== ''} />
      <div className="between">
        <Checkbox label={t().sign.endOthers} isOn={isEndingOthers} onChange={setEndingOthers} />
        <AriaLink href="/reset-password">{t().sign.forgot}</AriaLink>
      </div>
      {refusal === undefined ? null : <ProblemView refusal={refusal} />}
      <Button kind="primary" type="submit" isBusy={isBusy} isWide>
        {t().sign.in}
      </Button>
    </form>
  )
}

/** Navigations, not requests: the provider's page is on another origin. */
function Providers({ returnTo }: { readonly returnTo: string | undefined }): ReactNode {
  const { data } = useRead('get_identity_provider_status')
  if (data === undefined || !data.configured) return null
  const start = (provider: string, connection?: string): void =>
    location.assign(
      `/v1/auth/oidc/login?${new URLSearchParams({
        provider,
        ...defined({ connection, return_to: returnTo }),
      })}`,
    )
  return (
    <>
      <div className="stack tight">
        {data.providers.flatMap(({ name, display_name: title, connections }) => [
          ...connections.map((connection) => (
            <Button key={`${name} ${connection.name}`} isWide onPress={() => start(name, connection.name)}>
              {t().sign.with(connection.display_name)}
            </Button>
          )),
          <Button key={name} isWide onPress={() => start(name)}>
            {t().sign.with(title)}
          </Button>,
        ])}
      </div>
      <div className="divider">{t().sign.or}</div>
    </>
  )
}
