/** Pages of links in mails: the secret is in the fragment, which is removed from the address at once. */
import { type ReactNode, useEffect, useState } from 'react'
import { takeFromFragment } from '../api/browser.ts'
import { useRead } from '../api/cache.ts'
import { call } from '../api/client.ts'
import { Refusal } from '../api/refusal.ts'
import { safeReturn } from '../api/return-to.ts'
import { t } from '../texts/index.ts'
import { Button, ButtonLink } from '../ui/button.tsx'
import { Checkbox, PasswordField, TextField } from '../ui/field.tsx'
import { Loading } from '../ui/layout.tsx'
import { ProblemView } from '../ui/problem.tsx'
import { Outside } from './outside.tsx'
import { SecondFactor } from './second-factor.tsx'
import { useSubmission } from './submission.ts'

/** Undefined until it was taken; empty when the address has none. */
function useSecret(name: string): string | undefined {
  const [secret, setSecret] = useState<string>()
  useEffect(() => {
    const found = takeFromFragment(name)
    setSecret((before) => before ?? found)
  }, [name])
  return secret
}

interface MailedProps {
  readonly title: string
  readonly name: string
  readonly children: (secret: string) => ReactNode
  /** Instead of "this link is not complete". */
  readonly without?: ReactNode
}

function Mailed({ title, name, children, without }: MailedProps): ReactNode {
  const secret = useSecret(name)
  if (secret === undefined) return null
  if (secret !== '') return children(secret)
  return (
    without ?? (
      <Outside title={title} note={t().verify.missing}>
        <ButtonLink href="/login" isWide>
          {t().signUp.toSignIn}
        </ButtonLink>
      </Outside>
    )
  )
}

const Done = ({ title, text }: { readonly title: string; readonly text: string }): ReactNode => (
  <Outside title={title} note={text}>
    <ButtonLink href="/login" kind="primary" isWide>
      {t().sign.in}
    </ButtonLink>
  </Outside>
)

export const VerifyEmailPage = (): ReactNode => (
  <Mailed title={t().verify.title} name="token">
    {(token) => <VerifyEmail token={token} />}
  </Mailed>
)

function VerifyEmail({ token }: { readonly token: string }): ReactNode {
  const [email, setEmail] = useState<string>()
  const { isBusy, refusal, onSubmit } = useSubmission(async () =>
    setEmail((await call('confirm_email_verification', { body: { token }, isSigningIn: true })).email),
  )
  if (email !== undefined) return <Done title={t().verify.title} text={t().verify.done(email)} />
  return (
    <Outside title={t().verify.title} note={t().verify.text}>
      <form className="form" onSubmit={onSubmit}>
        {refusal === undefined ? null : <ProblemView refusal={refusal} />}
        <Button kind="primary" type="submit" isBusy={isBusy} isWide autoFocus>
          {t().verify.button}
        </Button>
      </form>
    </Outside>
  )
}

export const ResetPasswordPage = (): ReactNode => (
  <Mailed title={t().reset.title} name="token" without={<AskReset />}>
    {(token) => <SetPassword token={token} />}
  </Mailed>
)

function AskReset(): ReactNode {
  const [email, setEmail] = useState('')
  const [sentTo, setSentTo] = useState<string>()
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    await call('request_password_reset', { body: { email }, isSigningIn: true })
    setSentTo(email)
  })
  if (sentTo !== undefined) return <Done title={t().signUp.sent} text={t().reset.sent(sentTo)} />
  return (
    <Outside title={t().reset.title} note={t().reset.askText}>
      <form className="form" onSubmit={onSubmit} noValidate>
        <TextField
          label={t().sign.email}
          type="email"
          autoComplete="username"
          value={email}
          onChange={setEmail}
          wrong={refusal?.fields['email']}
          autoFocus
        />
        {refusal === undefined ? null : <ProblemView refusal={refusal} />}
        <Button kind="primary" type="submit" isBusy={isBusy} isWide>
          {t().reset.send}
        </Button>
        <ButtonLink href="/login" kind="quiet" isWide>
          {t().ui.cancel}
        </ButtonLink>
      </form>
    </Outside>
  )
}

function SetPassword({ token }: { readonly token: string }): ReactNode {
  const [password, setPassword] = useState('')
  const [isEndingTokens, setEndingTokens] = useState(true)
  const [isDone, setDone] = useState(false)
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    await call('confirm_password_reset', {
      body: { token, password, end_tokens: isEndingTokens },
      isSigningIn: true,
    })
    setDone(true)
  })
  if (isDone) return <Done title={t().reset.title} text={t().reset.done} />
  return (
    <Outside title={t().reset.title} note={t().reset.setText}>
      <form className="form" onSubmit={onSubmit} noValidate>
        <PasswordField
          label={t().sign.newPassword}
          note={t().signUp.rules}
          autoComplete="new-password"
          value={password}
          onChange={setPassword}
          wrong={refusal?.fields['password']}
          autoFocus
        />
        <Checkbox label={t().reset.endTokens} isOn={isEndingTokens} onChange={setEndingTokens} />
        {refusal === undefined ? null : <ProblemView refusal={refusal} />}
        <Button kind="primary" type="submit" isBusy={isBusy} isWide>
          {t().reset.set}
        </Button>
      </form>
    </Outside>
  )
}

export const AcceptInvitationPage = (): ReactNode => (
  <Mailed title={t().invitation.title} name="invitation">
    {(invitation) => <AcceptInvitation invitation={invitation} />}
  </Mailed>
)

function AcceptInvitation({ invitation }: { readonly invitation: string }): ReactNode {
  const { data, error } = useRead('look_up_invitation', { query: { invitation } })
  const [password, setPassword] = useState('')
  const [step, setStep] = useState<{ readonly challenge: string; readonly step: 'verify' | 'enroll' }>()
  const enter = (): void => location.replace('/dashboard')
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    const answer = await call('accept_invitation', { body: { invitation, password }, isSigningIn: true })
    if ('mfa_required' in answer) setStep({ challenge: answer.challenge, step: answer.mfa_step })
    else enter()
  })
  const title = t().invitation.title
  if (step !== undefined)
    return (
      <Outside title={t().factor.title}>
        <SecondFactor {...step} onDone={enter} onExpired={() => setStep(undefined)} />
      </Outside>
    )
  if (error instanceof Refusal)
    return (
      <Outside title={title}>
        <ProblemView refusal={error} />
      </Outside>
    )
  return (
    <Outside
      title={title}
      note={data === undefined ? undefined : t().invitation.text(data.account_name, t().members.roles[data.role])}
    >
      {data === undefined ? (
        <Loading />
      ) : (
        <form className="form" onSubmit={onSubmit} noValidate>
          <TextField
            label={t().sign.email}
            type="email"
            autoComplete="username"
            value={data.email}
            onChange={() => undefined}
          />
          <PasswordField
            label={t().sign.password}
            note={t().invitation.password}
            autoComplete="new-password"
            value={password}
            onChange={setPassword}
            wrong={refusal?.fields['password']}
            autoFocus
          />
          {refusal === undefined ? null : <ProblemView refusal={refusal} />}
          <Button kind="primary" type="submit" isBusy={isBusy} isWide>
            {t().invitation.button}
          </Button>
        </form>
      )}
    </Outside>
  )
}

export const HandoffPage = (): ReactNode => (
  <Mailed title={t().handoff.title} name="code">
    {(code) => <Handoff code={code} />}
  </Mailed>
)

function Handoff({ code }: { readonly code: string }): ReactNode {
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    const { redirect } = await call('redeem_support_handoff', { body: { code }, isSigningIn: true })
    location.replace(safeReturn(redirect, location.origin))
  })
  return (
    <Outside title={t().handoff.title} note={t().handoff.text}>
      <form className="form" onSubmit={onSubmit}>
        {refusal === undefined ? null : <ProblemView refusal={refusal} />}
        <Button kind="primary" type="submit" isBusy={isBusy} isWide autoFocus>
          {t().handoff.button}
        </Button>
      </form>
    </Outside>
  )
}
