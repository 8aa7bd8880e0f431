/** Buttons, and links that look like them. */
import './button.css'
import { createContext, type ReactNode, useContext } from 'react'
import { defined } from '../../domain/defined.ts'
import { Button as AriaButton, Link as AriaLink, Tooltip, TooltipTrigger } from 'react-aria-components'

type Kind = 'primary' | 'plain' | 'quiet' | 'danger'

export interface ButtonProps {
  readonly children?: ReactNode
  readonly kind?: Kind
  readonly icon?: ReactNode
  /** Name of a button that shows only its icon; shown beside it on hover. */
  readonly label?: string
  readonly onPress?: () => void
  readonly type?: 'button' | 'submit'
  readonly isBusy?: boolean
  /** Why it does nothing now: it stays in the order of focus and says so. */
  readonly why?: string | undefined
  readonly isWide?: boolean
  readonly autoFocus?: boolean
  readonly slot?: 'close'
  /** One of several, of which one is chosen. */
  readonly isChosen?: boolean
}

/** Id of what names the row that a button is in: `Remove` alone says not of what. */
export const RowName = createContext<string | undefined>(undefined)

export function Button(props: ButtonProps): ReactNode {
  const row = useContext(RowName)
  const { kind = 'plain', icon, label, why, isBusy = false, isWide = false, children, type = 'button' } = props
  const isIcon = label !== undefined && children === undefined
  const button = (
    <AriaButton
      className={['button', kind, isIcon ? 'icon' : '', isWide ? 'wide' : '', why === undefined ? '' : 'off'].join(' ')}
      type={why === undefined ? type : 'button'}
      {...defined({ slot: props.slot })}
      {...(label === undefined ? {} : { 'aria-label': why === undefined ? label : `${label}: ${why}` })}
      {...(why === undefined ? {} : { 'aria-disabled': true })}
      {...defined({ 'aria-describedby': row })}
      {...(props.isChosen === undefined ? {} : { 'aria-pressed': props.isChosen })}
      isPending={isBusy}
      autoFocus={props.autoFocus === true}
      onPress={() => {
        if (why === undefined) props.onPress?.()
      }}
    >
      {isBusy ? <span className="spinner" aria-hidden="true" /> : icon}
      {children}
    </AriaButton>
  )
  return <Hint text={why ?? (isIcon ? label : undefined)}>{button}</Hint>
}

export interface HintProps {
  /** Undefined when there is nothing to say: what has the focus keeps it when a hint comes or goes. */
  readonly text: string | undefined
  readonly children: ReactNode
}

/** A note on hover and focus. */
export function Hint({ text, children }: HintProps): ReactNode {
  return (
    <TooltipTrigger delay={400} closeDelay={80} isDisabled={text === undefined}>
      {children}
      <Tooltip className="tooltip" offset={6}>
        {text}
      </Tooltip>
    </TooltipTrigger>
  )
}

export interface ButtonLinkProps {
  readonly href: string
  readonly kind?: Kind
  readonly icon?: ReactNode
  readonly children: ReactNode
  readonly isWide?: boolean
}

export function ButtonLink({ href, kind = 'plain', icon, children, isWide = false }: ButtonLinkProps): ReactNode {
  return (
    <AriaLink href={href} className={['button', kind, isWide ? 'wide' : ''].join(' ')}>
      {icon}
      {children}
    </AriaLink>
  )
}
