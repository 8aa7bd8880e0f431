/** `/signup`. */
import { type ReactNode, useState } from 'react'
import { Link as AriaLink } from 'react-aria-components'
import { call } from '../api/client.ts'
import { SIGN_UP_CREDIT_CENTS, SIGN_UP_CREDIT_DAYS } from '../../domain/billing/sign-up-credit.ts'
import { money } from '../texts/format.ts'
import { t } from '../texts/index.ts'
import { Button, ButtonLink } from '../ui/button.tsx'
import { PasswordField, TextField } from '../ui/field.tsx'
import { More } from '../ui/layout.tsx'
import { ProblemView } from '../ui/problem.tsx'
import { Outside } from './outside.tsx'
import { useSubmission } from './submission.ts'

const EMPTY = { name: '', email: '', password: '', account_name: '', coupon_code: '' }

export function SignUpPage(): ReactNode {
  const coupon = new URLSearchParams(location.search).get('coupon') ?? ''
  const [values, setValues] = useState({ ...EMPTY, coupon_code: coupon })
  const [sentTo, setSentTo] = useState<string>()
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    const { account_name: account, coupon_code: code, ...needed } = values
    const { email } = await call('sign_up', {
      body: {
        ...needed,
        ...(account === '' ? {} : { account_name: account }),
        ...(code === '' ? {} : { coupon_code: code }),
      },
      isSigningIn: true,
    })
    setSentTo(email)
  })
  const field = (name: keyof typeof EMPTY) => ({
    value: values[name],
    onChange: (value: string) => setValues((before) => ({ ...before, [name]: value })),
    wrong: refusal?.fields[name],
  })
  if (sentTo !== undefined)
    return (
      <Outside title={t().signUp.sent} note={t().signUp.sentText(sentTo)}>
        <ButtonLink href={`/login?${new URLSearchParams({ email: sentTo })}`} kind="primary" isWide>
          {t().signUp.toSignIn}
        </ButtonLink>
      </Outside>
    )
  return (
    <Outside
      title={t().signUp.title}
      note={t().signUp.note(money(SIGN_UP_CREDIT_CENTS), SIGN_UP_CREDIT_DAYS)}
      below={
        <>
          {t().sign.haveAccount} <AriaLink href="/login">{t().sign.in}</AriaLink>
        </>
      }
    >
      <form className="form" onSubmit={onSubmit} noValidate>
        <TextField label={t().signUp.name} autoComplete="name" autoFocus {...field('name')} />
        <TextField label={t().sign.email} type="email" autoComplete="username" {...field('email')} />
        <PasswordField
          label={t().sign.password}
          note={t().signUp.rules}
          autoComplete="new-password"
          {...field('password')}
        />
        <More name={t().form.more}>
          <TextField
            label={t().signUp.account}
            note={t().signUp.accountNote}
            autoComplete="organization"
            isRequired={false}
            {...field('account_name')}
          />
          <TextField label={t().signUp.coupon} isRequired={false} {...field('coupon_code')} />
        </More>
        {refusal === undefined ? null : <ProblemView refusal={refusal} />}
        <Button kind="primary" type="submit" isBusy={isBusy} isWide>
          {t().signUp.button}
        </Button>
      </form>
    </Outside>
  )
}
