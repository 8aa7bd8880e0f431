/** Staff sign in with a password and a second factor. There are no providers and no recovery codes. */
import { type ReactNode, useState } from 'react'
import { call } from '../api/client.ts'
import { useSubmission } from '../pages/submission.ts'
import { t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { PasswordField, TextField } from '../ui/field.tsx'
import { ProblemView } from '../ui/problem.tsx'
import { o } from './texts/index.ts'

export interface StaffSignInProps {
  readonly onDone: () => void
  readonly email?: string
}

export function StaffSignIn({ onDone, email = '' }: StaffSignInProps): ReactNode {
  const [challenge, setChallenge] = useState<string>()
  return challenge === undefined ? (
    <PasswordForm email={email} onChallenge={setChallenge} />
  ) : (
    <CodeForm challenge={challenge} onDone={onDone} onExpired={() => setChallenge(undefined)} />
  )
}

interface PasswordFormProps {
  readonly email: string
  readonly onChallenge: (challenge: string) => void
}

function PasswordForm({ email: given, onChallenge }: PasswordFormProps): ReactNode {
  const [email, setEmail] = useState(given)
  const [password, setPassword] = useState('')
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    const { challenge } = await call('log_in_staff', { body: { email, password }, isSigningIn: true })
    onChallenge(challenge)
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
      {refusal === undefined ? null : <ProblemView refusal={refusal} />}
      <Button kind="primary" type="submit" isBusy={isBusy} isWide>
        {t().sign.in}
      </Button>
    </form>
  )
}

interface CodeFormProps {
  readonly challenge: string
  readonly onDone: () => void
  readonly onExpired: () => void
}

const CODE_LENGTH = 6
const asDigits = (text: string): string => text.replace(/\D/g, '').slice(0, CODE_LENGTH)

function CodeForm({ challenge, onDone, onExpired }: CodeFormProps): ReactNode {
  const [code, setCode] = useState('')
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    await call('verify_staff_second_factor', { body: { challenge, code }, isSigningIn: true })
    onDone()
  })
  return (
    <form className="form" onSubmit={onSubmit} noValidate>
      <TextField
        label={t().factor.code}
        note={o().sign.factorNote}
        value={code}
        onChange={(text) => setCode(asDigits(text))}
        inputMode="numeric"
        autoComplete="one-time-code"
        autoFocus
      />
      {refusal === undefined ? null : <ProblemView refusal={refusal} />}
      <Button kind="primary" type="submit" isBusy={isBusy} isWide>
        {t().factor.verify}
      </Button>
      <Button kind="quiet" onPress={onExpired}>
        {t().factor.startAgain}
      </Button>
    </form>
  )
}
